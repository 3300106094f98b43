"""Levels of recomputation after model fields have changed."""

from __future__ import annotations

from enum import IntEnum


class RecomputeLevel(IntEnum):
    """Level of recomputation in `Simulation.recompute_constants`, from cheapest to costliest.

    The native engine has one computation, `mj_setConst`, that covers every level above `none`.
    """

    none = 0
    """No recomputation: the field is read directly in every step."""
    set_const_fixed = 1
    """Constants independent of `qpos0`: subtree masses, bounds and poses of static geoms."""
    set_const_0 = 2
    """Constants that depend on `qpos0`: inverse weights, tendon lengths, references."""
    set_const = 3
    """All of the above."""
