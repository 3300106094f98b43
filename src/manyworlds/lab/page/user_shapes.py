"""Shapes that programs draw into the view of the page."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import PageContext, PagePart


class UserShapesPart(PagePart):
    """Draws the shapes of `LiveLab.drawings` under `/user`."""

    period = 0.2

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        self.drawn: dict[str, dict[str, Any]] = {}
        """Shapes that are in the view, by name."""
        self._handles: dict[str, list[Any]] = {}

    def renew(self) -> list[str]:
        """Draw all shapes into the new world."""
        self.drawn.clear()
        self._handles.clear()
        return []

    def update(self, snapshot: Snapshot) -> None:
        """Draw new shapes, and remove old ones."""
        count = self._ctx.lab.facts.drawings
        if not count and not self.drawn:
            return
        reply = self._ctx.verbs.read_drawings()
        shapes = reply["shapes"]
        for name in [n for n in self.drawn if self.drawn[n] != shapes.get(n)]:
            for handle in reversed(self._handles.pop(name)):
                handle.remove()
            del self.drawn[name]
        for name, shape in shapes.items():
            if name not in self.drawn:
                self.drawn[name] = shape
                self._handles[name] = self._draw(name, shape)

    def _draw(self, name: str, shape: dict[str, Any]) -> list[Any]:
        scene = self._ctx.server.scene
        kind = shape["kind"]
        node = f"/over/user/{hashlib.sha1(name.encode()).hexdigest()[:12]}"
        points = np.array(shape["points"])
        size = shape["size"]
        first = points[0]
        color = tuple(shape["color"])
        handles: list[Any] = []
        if kind == "marker":
            handles.append(scene.add_icosphere(node, size[0], color=color, position=first))
        elif kind == "box":
            sides = size if len(size) == 3 else 3 * size
            handles.append(
                scene.add_box(
                    node, color=color, dimensions=sides, wxyz=shape["quat"], position=first
                )
            )
        elif kind == "axes":
            handles.append(
                scene.add_frame(
                    node,
                    axes_length=size[0],
                    axes_radius=0.05 * size[0],
                    wxyz=shape["quat"],
                    position=first,
                )
            )
        elif kind in ("line", "arrow"):
            pieces = np.stack([points[:-1], points[1:]], axis=1)
            add = scene.add_arrows if kind == "arrow" else scene.add_line_segments
            handles.append(add(node, pieces, colors=color))
        if shape["text"]:
            handles.append(scene.add_label(f"{node}/text", shape["text"], position=(0, 0, 0)))
            if kind in ("text", "line", "arrow"):
                handles[-1].position = first
        return handles
