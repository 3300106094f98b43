"""Copies of MuJoCo specs that keep all elements, or say why they cannot."""

from __future__ import annotations

import mujoco

_LISTS = (
    *("pairs", "excludes", "equalities", "tendons", "actuators", "sensors"),
    *("tuples", "skins", "flexes"),
)
"""Elements that refer to others."""


def copy_spec(spec: mujoco.MjSpec) -> mujoco.MjSpec:
    """Return a copy of a spec with all elements.

    `MjSpec.copy` leaves out elements that refer to missing ones, such as a sensor of a site that
    does not exist, and what is left compiles.

    Raises:
        ValueError: an element refers to a missing one; the message is MuJoCo's.
    """
    copy = spec.copy()
    for name in _LISTS:
        if (count := len(getattr(spec, name))) != (kept := len(getattr(copy, name))):
            spec.compile()  # raises MuJoCo's error, which names the reference
            raise ValueError(f"MuJoCo copies {kept} of {count} {name}: check what they refer to.")
    return copy
