"""Values of a curriculum that change linearly between points."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

Points = tuple[tuple[int, float], ...]
"""Control steps, in increasing order, and values."""

_EVERY = 500  # control steps between two stages


def ramp(points: Points) -> Iterator[tuple[int, float]]:
    """Yield control steps of stages, from 0 on, and their values."""
    steps, values = zip(*points, strict=True)
    yield 0, values[0]
    for step in range(steps[0] + _EVERY, steps[-1] + 1, _EVERY):
        yield step, float(np.interp(step, steps, values))


def scaled(ranges: dict[str, tuple[float, float]], factor: float) -> dict[str, tuple[float, float]]:
    """Return ranges whose bounds are multiplied by a factor."""
    return {name: (factor * low, factor * high) for name, (low, high) in ranges.items()}
