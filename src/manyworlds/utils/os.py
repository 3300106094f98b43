"""Files: written whole or not at all, and read for specs."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; rename it there if the block succeeds.

    A block that fails leaves nothing behind, and whatever stood at `path` before.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}.", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            error.filename = str(path)
        raise


def write_atomic(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all."""
    with atomic_path(path) as temporary:
        if isinstance(content, str):
            content = content.encode()
        temporary.write_bytes(content)


def update_assets(assets: dict[str, bytes], path: Path, meshdir: str | None = None) -> None:
    """Add the files of a folder, and of those in it, to the assets of a spec.

    Args:
        assets: contents by the names that a spec finds them under; extended.
        path: the folder.
        meshdir: the spec's `meshdir`, which the names begin with.

    Raises:
        NotADirectoryError: there is no such folder.
    """
    path = Path(path)
    if not path.is_dir():
        raise NotADirectoryError(f"There is no folder '{path}' to read assets from.")
    for file in sorted(path.rglob("*")):
        if file.is_file():
            assets[Path(meshdir or "", file.relative_to(path)).as_posix()] = file.read_bytes()
