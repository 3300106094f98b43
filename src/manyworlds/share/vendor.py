"""Programs of others that the page needs: pinned npm packages, checked and kept in a cache."""

from __future__ import annotations

import base64
import gzip
import hashlib
import importlib.metadata
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from manyworlds.utils.platforms import cache_folder, replace_path

MIT = """Permission is hereby granted, free of charge, to any person obtaining a copy of this
software and associated documentation files (the "Software"), to deal in the Software without
restriction, including without limitation the rights to use, copy, modify, merge, publish,
distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the
Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial
portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT
NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES
OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN
CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""


@dataclass(frozen=True)
class NpmPackage:
    """Package of npm in one version, and the files that pages take from it."""

    name: str
    version: str
    integrity: str
    """SHA-512 of the archive in base64, after `sha512-`, as npm's lock files have it."""
    license: str
    copyright: str
    source: str
    files: Mapping[str, str]
    """Names in the folder `vendor` by names in the package; `.gz` stands for compressed."""

    @property
    def archive(self) -> str:
        """File name of the archive."""
        return f"{self.name.removeprefix('@').replace('/', '-')}-{self.version}.tgz"


MUJOCO = NpmPackage(
    name="@mujoco/mujoco",
    version="3.14.0",
    integrity="sha512-WPUYidu4Fx8+uM4hQv80SOA0ifpWGrsNJguKs8JBV8SCTxjKQ2/"
    "rqsh880nUH0/Vwa8vuefghvCQkkoed3bkUg==",
    license="Apache-2.0",
    copyright="DeepMind Technologies Limited",
    source="https://github.com/google-deepmind/mujoco",
    files={"mujoco.js": "mujoco.js", "mujoco.wasm": "mujoco.wasm.gz"},
)
PACKAGES = (
    MUJOCO,
    NpmPackage(
        name="onnxruntime-web",
        version="1.30.0",
        integrity="sha512-q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmR"
        "MDs1SigqR4CXAfKYQ==",
        license="MIT",
        copyright="Microsoft Corporation",
        source="https://github.com/microsoft/onnxruntime",
        files={
            "dist/ort.wasm.bundle.min.mjs": "ort.wasm.bundle.min.mjs",
            "dist/ort-wasm-simd-threaded.wasm": "ort-wasm-simd-threaded.wasm.gz",
        },
    ),
    NpmPackage(
        name="three",
        version="0.187.0",
        integrity="sha512-Qiu7R+Cmh8CstZsY1uJOSWnVlfo7ZtNLV7mF8Jltk3LB3AtDu9cRZlcnRKkAk8Y4z6KKw"
        "35z7Y7Urd7jWY8etA==",
        license="MIT",
        copyright="2010-2026 three.js authors",
        source="https://github.com/mrdoob/three.js",
        files={
            "build/three.module.js": "three.module.js",
            "build/three.core.js": "three.core.js",
        },
    ),
)
"""What all pages use."""


def vendor_files() -> dict[str, bytes]:
    """Return the files of the folder `vendor` by name; download packages that are not in the cache.

    Raises:
        FileNotFoundError: a package is not in the cache, and npm is not installed.
        ConnectionError: npm cannot download a package.
        ValueError: an archive is not the pinned one.
    """
    files = {}
    for package in PACKAGES:
        with tarfile.open(_archive(package)) as archive:
            for inner, name in package.files.items():
                member = archive.extractfile(f"package/{inner}")
                assert member is not None
                content = member.read()
                if name.endswith(".gz"):
                    content = gzip.compress(content, 6, mtime=0)
                files[name] = content
    return files


def licenses_text() -> str:
    """Return names, versions, sources and licenses of all packages, with the licenses' texts."""
    lines = ["This folder contains programs of others, unchanged, in the folder vendor:", ""]
    for package in PACKAGES:
        lines += [
            f"{package.name} {package.version}",
            f"  Copyright {package.copyright}",
            f"  License: {package.license}",
            f"  Source: {package.source}",
            f"  Files: {', '.join(package.files.values())}",
            "",
        ]
    lines += [f"{'=' * 20} MIT {'=' * 20}", "", MIT]
    lines += [f"{'=' * 20} Apache-2.0 {'=' * 20}", "", _apache_license()]
    return "\n".join(lines)


def _archive(package: NpmPackage) -> Path:
    """Return the archive of a package in the cache, after a check; download it if it is missing."""
    folder = cache_folder() / "npm"
    kept = folder / package.archive
    if not kept.is_file():
        npm = shutil.which("npm")
        if npm is None:
            raise FileNotFoundError(
                f"The page needs {package.name} {package.version} from npm, and npm is not "
                "installed: install Node.js (https://nodejs.org), or copy "
                f"{package.archive} to '{folder}'."
            )
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            wanted = f"{package.name}@{package.version}"
            done = subprocess.run(
                [npm, "pack", wanted, "--ignore-scripts", "--pack-destination", scratch],
                capture_output=True,
                text=True,
                cwd=scratch,
            )
            found = list(Path(scratch).glob("*.tgz"))
            if done.returncode or len(found) != 1:
                reason = (done.stderr.strip().splitlines() or ["no archive"])[0]
                raise ConnectionError(f"npm cannot download {wanted} ({reason}): try again online.")
            _check(found[0], package)
            replace_path(found[0], kept)
    _check(kept, package)
    return kept


def _check(archive: Path, package: NpmPackage) -> None:
    """Raise an error if an archive is not the pinned one."""
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if f"sha512-{digest}" != package.integrity:
        raise ValueError(
            f"'{archive}' is not {package.name} {package.version}: its SHA-512 is {digest}, not "
            f"{package.integrity.removeprefix('sha512-')}; delete it, and try again."
        )


def _apache_license() -> str:
    """Return the text of the license that MuJoCo's Python package brings."""
    for file in importlib.metadata.files("mujoco") or ():
        if file.name == "LICENSE":
            return file.read_text()
    return "https://www.apache.org/licenses/LICENSE-2.0"
