"""Groups of lines that are sent once and then only moved."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import viser

Lines = tuple[np.ndarray, np.ndarray]
"""Ends of lines [m], shape (n, 2, 3), and their colours, uint8, shape (n, 3)."""


class LineLayer:
    """Groups of lines, each with a frame of its own; they cost nothing while none is shown.

    Args:
        server: where to draw.
        path: the name in the scene with which all handles begin.
        make: returns the lines of a group, at least one, in the group's frame.
    """

    def __init__(self, server: viser.ViserServer, path: str, make: Callable[[Any], Lines]) -> None:
        self._server, self._path, self._make = server, path, make
        self._handles: dict[Any, Any] = {}

    @property
    def handles(self) -> dict[Any, Any]:
        """The lines of each group that was shown so far."""
        return self._handles

    def show(self, keys: Iterable[Any], positions: np.ndarray, quats: np.ndarray) -> None:
        """Show these groups only.

        Args:
            keys: which.
            positions: where their frames are [m], shape (n, 3).
            quats: how they are turned (wxyz), shape (n, 4).
        """
        keys = list(keys)
        wanted = set(keys)
        for key, handle in self._handles.items():
            handle.visible = key in wanted
        for key, position, quat in zip(keys, positions, quats, strict=True):
            if key not in self._handles:
                points, colors = self._make(key)
                self._handles[key] = self._server.scene.add_line_segments(
                    f"{self._path}_{len(self._handles)}",
                    points=points.astype(np.float32),
                    colors=np.repeat(colors[:, None], 2, axis=1),
                    thickness=2.0,
                    thickness_units="screen",
                )
            self._handles[key].position = position
            self._handles[key].wxyz = quat
