"""Folder of the files that browsers and programs upload as sources of items."""

from __future__ import annotations

import os
from pathlib import Path


def uploads_folder() -> Path:
    """Return the folder of uploads: `manyworlds/uploads` in the user's cache.

    Uploads stay there, because the scene and its history read them again.
    """
    cache = os.environ.get("XDG_CACHE_HOME")
    return Path(cache or Path.home() / ".cache", "manyworlds", "uploads")
