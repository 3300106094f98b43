"""Folder of the files that browsers and programs upload as sources of items."""

from __future__ import annotations

from pathlib import Path

from manyworlds.utils.platforms import cache_folder


def uploads_folder() -> Path:
    """Return the folder of uploads: `uploads` in the user's cache.

    Uploads stay there, because the scene and its history read them again.
    """
    return cache_folder() / "uploads"
