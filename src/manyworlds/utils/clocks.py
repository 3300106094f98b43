"""Timers that are read once per step, with one rule for rounding errors.

A duration ends with the first step at or after its end. Times within a hundredth of a step of a
whole number of steps count as that number, so that 1 s at 50 Hz takes 50 steps although 0.02 is no
binary number.
"""

from __future__ import annotations

import math

import torch

_TOLERANCE = 0.01  # steps


def steps_in(duration: float, dt: float) -> int:
    """Return the number of steps of `dt` [s] that a duration [s] takes, rounded up."""
    return math.ceil(duration / dt - _TOLERANCE)


def count_down(time_left: torch.Tensor, dt: float | torch.Tensor) -> torch.Tensor:
    """Advance timers by one step in place; return a mask of those that have expired.

    Times near a whole number of steps become that number of steps, so that the rounding errors of
    many steps do not add up.

    Args:
        time_left: times [s], float32, any shape.
        dt: length of the step [s], or one for each timer.

    Returns:
        Mask of the timers that end with this step, of the same shape.
    """
    time_left -= dt
    # A step of 0 makes NaN or infinity here, which is near to nothing.
    steps = time_left / dt
    whole = steps.round()
    near = (steps - whole).abs_() < _TOLERANCE
    torch.where(near, whole.mul_(dt), time_left, out=time_left)
    return time_left <= 0.0
