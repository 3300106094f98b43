"""Spaces of gymnasium."""

from __future__ import annotations

from collections.abc import Sequence

import gymnasium
import numpy as np

_FLOAT_MAX = float(np.finfo(np.float32).max)


def unbounded_box(shape: Sequence[int]) -> gymnasium.spaces.Box:
    """Return a box of float32 with the largest finite bounds, as gymnasium's checker requires."""
    return gymnasium.spaces.Box(-_FLOAT_MAX, _FLOAT_MAX, tuple(shape), np.float32)
