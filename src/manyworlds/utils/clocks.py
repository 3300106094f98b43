"""Timers that are read once per step, with one rule for rounding errors.

A duration ends with the first step at or after its end. Times are rounded to 1/64 of a step, so
that 1 s at 50 Hz takes 50 steps although 0.02 is no binary number.
"""

from __future__ import annotations

import math

import torch

_PARTS = 64  # of a step


def steps_in(duration: float, dt: float) -> int:
    """Return the number of steps of `dt` [s] that a duration [s] takes, rounded up."""
    return math.ceil(round(duration / dt * _PARTS) / _PARTS)


def count_down(time_left: torch.Tensor, dt: float | torch.Tensor) -> torch.Tensor:
    """Advance timers by one step in place; return a mask of those that have expired.

    The rounding errors of many steps do not add up, because times are rounded in each step.

    Args:
        time_left: times [s], float32, any shape.
        dt: length of the step [s], or one for each timer.

    Returns:
        Mask of the timers that end with this step, of the same shape.
    """
    if not isinstance(dt, torch.Tensor):
        if dt > 0.0:
            time_left.sub_(dt).mul_(_PARTS / dt).round_().mul_(dt / _PARTS)
        return time_left <= 0.0
    moves = dt > 0.0
    step = torch.where(moves, dt, 1.0)
    left = (time_left - step).mul_(_PARTS / step).round_().mul_(step / _PARTS)
    torch.where(moves, left, time_left, out=time_left)
    return time_left <= 0.0
