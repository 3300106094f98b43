"""Shapes that programs draw into the view of a live world."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

ShapeKind = Literal["marker", "line", "box", "axes", "arrow", "text"]
KINDS: tuple[ShapeKind, ...] = ("marker", "line", "box", "axes", "arrow", "text")
MOST_SHAPES = 1000
"""Largest number of shapes of a lab."""
_POINTS = {"marker": (1, 1), "line": (2, 10_000), "box": (1, 1), "axes": (1, 1)}
_POINTS |= {"arrow": (2, 2), "text": (1, 1)}


@dataclass(frozen=True, kw_only=True)
class UserShape:
    """Shape in the view."""

    kind: ShapeKind
    points: tuple[tuple[float, ...], ...]
    """Center, points of a line, or start and end of an arrow [m]."""
    size: tuple[float, ...]
    """Side lengths of a box, or one size [m]."""
    quat: tuple[float, ...]
    """Orientation of a box or of axes (wxyz)."""
    color: tuple[float, ...]
    """Red, green and blue, 0 to 1."""
    text: str
    until: float
    """Time of `time.monotonic` when it vanishes [s]; infinite if it stays."""


class UserDrawings:
    """Shapes by name; each vanishes after its time to live. Pages draw them under `/user`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shapes: dict[str, UserShape] = {}

    def draw(
        self,
        name: str,
        kind: ShapeKind,
        points: Sequence[Sequence[float]],
        *,
        size: Sequence[float] = (0.05,),
        quat: Sequence[float] = (1.0, 0.0, 0.0, 0.0),
        color: Sequence[float] = (1.0, 0.4, 0.1),
        text: str = "",
        ttl: float = math.inf,
    ) -> None:
        """Draw a shape; one of the same name is replaced.

        Args:
            name: name of the shape.
            kind: marker, line, box, axes, arrow or text.
            points: center, points of a line, or start and end of an arrow [m], shape [n, 3].
            size: side lengths of a box, shape [3]; or radius of a marker, width of a line, length
                of axes, shape [1] [m].
            quat: orientation of a box or of axes (wxyz).
            color: red, green and blue, 0 to 1.
            text: text at the first point.
            ttl: time to live [s].

        Raises:
            ValueError: the numbers do not fit the kind, or there are too many shapes.
        """
        if kind not in KINDS:
            raise ValueError(f"A shape is one of {', '.join(KINDS)}, got '{kind}'.")
        places = np.empty((0, 3))
        if np.size(points) % 3 == 0:
            places = np.array(points, float).reshape(-1, 3)
        least, most = _POINTS[kind]
        if not least <= len(places) <= most or not np.isfinite(places).all():
            raise ValueError(
                f"{kind} '{name}' needs {least} to {most} points of 3 finite numbers [m], got "
                f"{np.size(points)} numbers."
            )
        sizes = tuple(float(value) for value in size)
        if len(sizes) not in (1, 3) or not all(0.0 < value < math.inf for value in sizes):
            raise ValueError(f"The size of '{name}' must be 1 or 3 positive numbers, got {sizes}.")
        if not ttl > 0.0:
            raise ValueError(f"The ttl of '{name}' must be positive [s], got {ttl:g}.")
        shape = UserShape(
            kind=kind,
            points=tuple((float(p[0]), float(p[1]), float(p[2])) for p in places),
            size=sizes,
            quat=tuple(map(float, quat)),
            color=tuple(min(max(float(part), 0.0), 1.0) for part in color),
            text=text,
            until=time.monotonic() + ttl,
        )
        with self._lock:
            self._forget()
            if name not in self._shapes and len(self._shapes) >= MOST_SHAPES:
                raise ValueError(f"There are {MOST_SHAPES} shapes: clear some, or give them a ttl.")
            self._shapes[name] = shape

    def clear(self, name: str = "") -> None:
        """Remove a shape, or all of them if the name is empty."""
        with self._lock:
            if name:
                self._shapes.pop(name, None)
            else:
                self._shapes.clear()

    @property
    def shapes(self) -> dict[str, UserShape]:
        """Shapes that are visible now, by name."""
        with self._lock:
            self._forget()
            return dict(self._shapes)

    def _forget(self) -> None:
        now = time.monotonic()
        for name in [name for name, shape in self._shapes.items() if shape.until <= now]:
            del self._shapes[name]
