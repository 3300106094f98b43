"""Files that come from elsewhere, such as from a browser: kept in one folder, within limits."""

from __future__ import annotations

import io
import re
import shutil
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

from manyworlds.spec.mesh_files import MESH_SUFFIXES

MAX_UPLOAD_BYTES = 2**28
"""Largest size of an upload, and of the contents of an archive [bytes]."""
MAX_ENTRIES = 5000
"""Largest number of files in an archive."""
MAX_RATIO = 200
"""Largest ratio of the size of a file in an archive to its compressed size."""
MODEL_SUFFIXES = (".xml", ".mjcf", ".urdf")
"""Endings of the names of model files."""
_SMALL = 2**20  # small files may be as regular as they like


def read_upload(name: str, content: bytes, folder: Path) -> Path:
    """Keep an uploaded file, or unpack an archive of a model and its files; return the model.

    Each upload has a folder of its own, so that no upload replaces another.

    Args:
        name: name of the file, from which folders and special characters are removed.
        content: the file: a model, whose name may end in anything if it is XML; a mesh; or a `.zip`
            with one model file in its highest folder that has any, or else one mesh.
        folder: folder of all uploads.

    Returns:
        Path of the model or mesh file.

    Raises:
        ValueError: the file is of another kind, exceeds the limits, or is no archive; nothing is
            kept.
    """
    clean = _clean(name)
    suffix = Path(clean).suffix.lower()
    if len(content) > MAX_UPLOAD_BYTES:
        raise ValueError(
            f"'{clean}' has {len(content) / 2**20:.0f} MiB, and an upload may have "
            f"{MAX_UPLOAD_BYTES // 2**20}: open the file by its path instead."
        )
    known = (*MODEL_SUFFIXES, *MESH_SUFFIXES, ".zip")
    if suffix not in known and not content.lstrip(b"\xef\xbb\xbf").lstrip().startswith(b"<"):
        raise ValueError(
            f"'{clean}' is no model: upload one of {', '.join(MODEL_SUFFIXES + MESH_SUFFIXES)}, or "
            "a .zip of a model and its files."
        )
    folder.mkdir(parents=True, exist_ok=True)
    own = Path(tempfile.mkdtemp(dir=folder, prefix=f"{Path(clean).stem[:40]}-"))
    try:
        if suffix == ".zip":
            _unpack(clean, content, own)
            return _model_in(clean, own)
        (own / clean).write_bytes(content)
        return own / clean
    except BaseException:
        shutil.rmtree(own, ignore_errors=True)
        raise


def _clean(name: str) -> str:
    """Return the last part of a name without special characters, which is never hidden or empty."""
    last = re.split(r"[/\\]", name)[-1]
    stem, _, suffix = last.rpartition(".")
    if not stem:  # no dot, or only one at the beginning
        stem = suffix
        suffix = ""
    clean = re.sub(r"[^\w+-]", "_", stem)[:100] or "upload"
    if suffix:
        clean += "." + re.sub(r"[^\w+-]", "_", suffix)[:20]
    return clean


def _unpack(name: str, content: bytes, folder: Path) -> None:
    """Unpack an archive whose entries are all checked before the first one is written."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        _check_entries(name, entries)
        for entry in entries:
            place = folder / _inside(name, entry.filename)
            place.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(entry) as source:
                data = source.read(entry.file_size + 1)  # the header may lie about the size
            if len(data) != entry.file_size:
                raise zipfile.BadZipFile(f"'{entry.filename}' has another size than it says")
            place.write_bytes(data)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise ValueError(f"'{name}' cannot be unpacked: {error}.") from error


def _check_entries(name: str, entries: list[zipfile.ZipInfo]) -> None:
    if len(entries) > MAX_ENTRIES:
        raise ValueError(f"'{name}' has {len(entries)} files, and {MAX_ENTRIES} are allowed.")
    total = sum(entry.file_size for entry in entries)
    if total > MAX_UPLOAD_BYTES:
        raise ValueError(
            f"'{name}' has {total / 2**20:.0f} MiB unpacked, and {MAX_UPLOAD_BYTES // 2**20} are "
            "allowed."
        )
    for entry in entries:
        _inside(name, entry.filename)
        if entry.external_attr >> 28 == 0o12:
            raise ValueError(f"'{name}' has a link, '{entry.filename}', which is not unpacked.")
        ratio = entry.file_size / max(entry.compress_size, 1)
        if entry.file_size > _SMALL and ratio > MAX_RATIO:
            raise ValueError(
                f"'{entry.filename}' in '{name}' grows {ratio:.0f} times when it is unpacked, and "
                f"{MAX_RATIO} times are allowed."
            )


def _inside(name: str, entry: str) -> PurePosixPath:
    """Return the path of an entry, which must stay in the folder."""
    path = PurePosixPath(entry.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in entry or "\0" in entry or not path.parts:
        raise ValueError(f"'{name}' has a file outside its folder: '{entry}'.")
    return path


def _model_in(name: str, folder: Path) -> Path:
    """Return the model of an unpacked archive: the highest one that no other file includes."""
    for suffixes in (MODEL_SUFFIXES, MESH_SUFFIXES):
        files = [
            p for p in sorted(folder.rglob("*")) if p.suffix.lower() in suffixes and p.is_file()
        ]
        top = min((len(path.parts) for path in files), default=0)
        found = [path for path in files if len(path.parts) == top]
        if len(found) > 1:
            usual = ("model", "scene", Path(name).stem)
            found = [path for path in found if path.stem in usual] or found
        if len(found) > 1:
            found = [path for path in found if not _is_included(path, files)] or found
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(path.name for path in found[:5])
            raise ValueError(
                f"'{name}' has several models, {names}: name the one to open model.xml, or upload "
                "them one by one."
            )
    raise ValueError(f"'{name}' has no model: no file ends in {', '.join(MODEL_SUFFIXES)}.")


def _is_included(path: Path, files: list[Path]) -> bool:
    word = f'"{path.name}"'.encode()
    return any(word in other.read_bytes() for other in files if other != path)
