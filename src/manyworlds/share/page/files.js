// Files of the folder, which may be compressed.

/** Fetch a file; one that is named *.gz comes back unpacked. */
export async function fetchBytes(url) {
  let response;
  try {
    response = await fetch(url);
  } catch (error) {
    throw new Error(`The file '${url}' could not be read (${error.message}): is the server up?`);
  }
  if (!response.ok) {
    throw new Error(`The file '${url}' is missing (${response.status}): write the folder again.`);
  }
  const bytes = new Uint8Array(await response.arrayBuffer());
  // Some servers declare the compression, so that the browser has unpacked the file already.
  const packed = bytes[0] === 0x1f && bytes[1] === 0x8b;
  if (!url.endsWith(".gz") || !packed) return bytes;
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export async function fetchJson(url) {
  const bytes = await fetchBytes(url);
  return JSON.parse(new TextDecoder().decode(bytes));
}

/** Return a file's name without the ending of compressed files. */
export function unpackedName(name) {
  return name.replace(/\.gz$/, "");
}

/** Return the folder of a path, with a slash at its end. */
export function folderOf(path) {
  return path.slice(0, path.lastIndexOf("/") + 1);
}
