"""Files that browsers and programs upload as sources of items."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from manyworlds.lab.scene.sources import MAX_BYTES, MESHES, MODELS
from manyworlds.utils.files import write_atomic


def uploads_folder() -> Path:
    """Return the folder of uploads: `manyworlds/uploads` in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return Path(cache or Path.home() / ".cache", "manyworlds", "uploads")


def keep_upload(name: str, content: bytes, folder: Path | None = None) -> Path:
    """Keep an uploaded file, under its name in a folder of its content; return its path.

    It stays, because the scene and its history read it again.

    Args:
        name: name of the file; folders in it are left out.
        content: content of the file.
        folder: folder of uploads; `uploads_folder()` if None.

    Raises:
        ValueError: it is too large, or no file that a source can be.
    """
    stem, _, ending = re.split(r"[/\\]", name)[-1].rpartition(".")
    if not stem or f".{ending.lower()}" not in MODELS + MESHES:
        raise ValueError(
            f"'{name}' is no model and no mesh: upload one of {', '.join(MODELS + MESHES)}."
        )
    if len(content) > MAX_BYTES:
        raise ValueError(
            f"'{name}' has {len(content) / 1e6:.0f} MB: uploads have at most "
            f"{MAX_BYTES / 1e6:.0f} MB; add it by its path."
        )
    plain = re.sub(r"[^\w-]", "_", stem)[:64] or "upload"
    digest = hashlib.sha256(content).hexdigest()[:16]
    path = (folder or uploads_folder()) / digest / f"{plain}.{ending.lower()}"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        write_atomic(path, content)
    return path
