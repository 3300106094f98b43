"""Groups of lines that are sent to the browser once and then only moved."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

if TYPE_CHECKING:
    import viser

Lines = tuple[np.ndarray, np.ndarray]
"""Ends of lines [m], shape (n, 2, 3), and their colors, uint8, shape (n, 3)."""


_Key = TypeVar("_Key", bound=Hashable)


class LineGroups(Generic[_Key]):
    """Groups of lines, each with its own frame; they cost nothing while none is shown.

    Args:
        server: server of the page.
        path: prefix of the names of all handles in the scene.
        make: function that returns the lines of a group, at least one, in the group's frame.
    """

    def __init__(self, server: viser.ViserServer, path: str, make: Callable[[_Key], Lines]) -> None:
        self._server = server
        self._path = path
        self._make = make
        self._handles: dict[_Key, viser.LineSegmentsHandle] = {}
        self._geometry: dict[_Key, Hashable] = {}

    @property
    def handles(self) -> dict[_Key, viser.LineSegmentsHandle]:
        """Handles of all groups that were shown so far."""
        return self._handles

    def show(
        self,
        keys: Iterable[_Key],
        positions: np.ndarray,
        quats: np.ndarray,
        geometry: Iterable[Hashable],
    ) -> None:
        """Show these groups only.

        Args:
            keys: the groups.
            positions: positions of their frames [m], shape (n, 3).
            quats: orientations of their frames (w, x, y, z), shape (n, 4).
            geometry: values that a group's lines depend on; a group whose value changes is created
                again.
        """
        keys = list(keys)
        wanted = set(keys)
        for key, handle in self._handles.items():
            handle.visible = key in wanted
        for key, position, quat, value in zip(keys, positions, quats, geometry, strict=True):
            if key in self._handles and self._geometry[key] != value:
                self._handles.pop(key).remove()
            if key not in self._handles:
                self._handles[key] = self._add(key)
                self._geometry[key] = value
            self._handles[key].position = position
            self._handles[key].wxyz = quat

    def remove(self) -> None:
        """Remove all lines from the scene."""
        for handle in self._handles.values():
            handle.remove()
        self._handles.clear()

    def _add(self, key: _Key) -> viser.LineSegmentsHandle:
        """Add the lines of a group to the scene."""
        points, colors = self._make(key)
        name = str(key)
        if isinstance(key, tuple):
            name = "_".join(map(str, key))
        return self._server.scene.add_line_segments(
            f"{self._path}_{name}",
            points=points.astype(np.float32),
            colors=np.repeat(colors[:, None], 2, axis=1),
            thickness=2.0,
            thickness_units="screen",
        )
