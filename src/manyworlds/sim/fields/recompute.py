"""How much of a model to recompute after its fields were changed."""

from __future__ import annotations

from enum import IntEnum


class RecomputeLevel(IntEnum):
    """What `Simulation.recompute_constants` recomputes, from cheapest to most expensive.

    The native engine has one computation, `mj_setConst`, that covers every level above `none`.
    """

    none = 0
    """Nothing: the field is read as it is in every step."""
    set_const_fixed = 1
    """What does not depend on `qpos0`: subtree masses, bounds and poses of static geoms."""
    set_const_0 = 2
    """What depends on `qpos0`: inverse weights, tendon lengths, camera and light references."""
    set_const = 3
    """Everything above."""
