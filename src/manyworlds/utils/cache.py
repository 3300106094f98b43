"""Arrays that are kept in the user's cache folder by the content that they were computed from."""

from __future__ import annotations

import hashlib
import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from manyworlds.utils.files import atomic_path
from manyworlds.utils.platforms import cache_folder


class ArrayCache:
    """Folder of the user's cache with arrays by key.

    Entries are written aside and renamed, so that programs can share them; a damaged entry counts
    as a missing one.

    Args:
        folder: name of the folder.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    @property
    def folder(self) -> Path:
        """The folder, in that of `platforms.cache_folder`."""
        return cache_folder() / self._folder

    def read(self, key: str) -> list[np.ndarray] | None:
        """Return the arrays of a key, in their shapes; None if there are none."""
        return read_arrays(self.folder / f"{key}.npz")

    def keep(self, key: str, arrays: Sequence[np.ndarray]) -> None:
        """Keep the arrays of a key; warn if the folder cannot be written."""
        try:
            with atomic_path(self.folder / f"{key}.npz") as temporary:
                np.savez(temporary, *arrays)
        except OSError as error:
            warnings.warn(
                f"The cache '{self.folder}' cannot be written, so that this is computed again next "
                f"time: {error}.",
                stacklevel=3,
            )


def read_arrays(path: Path) -> list[np.ndarray] | None:
    """Return the arrays in an NPZ file, in their shapes; None if it is missing or damaged."""
    try:
        with np.load(path) as kept:
            return list(kept.values())
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
        return None


def content_key(settings: object, *contents: bytes | np.ndarray) -> str:
    """Return a key of settings, by their representation, and of contents."""
    digest = hashlib.sha256(repr(settings).encode())
    for content in contents:
        if isinstance(content, np.ndarray):
            digest.update(f"{content.dtype} {content.shape} ".encode())
            content = np.ascontiguousarray(content).tobytes()
        digest.update(content)
    return digest.hexdigest()[:32]
