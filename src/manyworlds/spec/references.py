"""Copies of MuJoCo specs that keep all elements, or say why they cannot; their keyframes."""

from __future__ import annotations

import mujoco

from manyworlds.validation.names import free_name
from manyworlds.validation.rules import refuse

_LISTS = (
    "pairs",
    "excludes",
    "equalities",
    "tendons",
    "actuators",
    "sensors",
    "tuples",
    "skins",
    "flexes",
)
"""Elements that refer to others."""


_KEY_VALUES = ("qpos", "qvel", "act", "ctrl", "mpos", "mquat")


def copy_spec(spec: mujoco.MjSpec) -> mujoco.MjSpec:
    """Return a copy of a spec with all elements.

    `MjSpec.copy` leaves out elements that refer to missing ones, such as a sensor of a site that
    does not exist, and what is left compiles.

    Raises:
        ValueError: an element refers to a missing one, or keyframes have one name; the message is
            MuJoCo's.
    """
    check_keyframes(spec)
    copy = spec.copy()
    for name in _LISTS:
        count = len(getattr(spec, name))
        kept = len(getattr(copy, name))
        if kept != count:
            refuse(_why_incomplete(spec, f"MuJoCo copies {kept} of {count} {name}"))
    return copy


def _why_incomplete(spec: mujoco.MjSpec, what: str) -> str:
    """Return MuJoCo's error, which names the reference of an element that cannot be copied."""
    try:
        spec.compile()
    except ValueError as error:
        return str(error)
    return f"{what}: check what they refer to."


def check_keyframes(spec: mujoco.MjSpec) -> None:
    """Check that no keyframes have one name, with which MuJoCo compiles no spec.

    Where they are those of attached parts, `MjSpec.copy` ends the process.

    Raises:
        ValueError: two have one; the message is MuJoCo's.
    """
    seen = set()
    for key in spec.keys:
        if key.name in seen:
            raise ValueError(f"Error: repeated name '{key.name}' in key")
        if key.name:
            seen.add(key.name)


def complete_keyframes(spec: mujoco.MjSpec) -> None:
    """Give the keyframes of attached parts their values, which MuJoCo does when it compiles.

    Until then they are empty, and would not get a prefix where the spec itself is attached. Specs
    that come from elsewhere are completed once, before they are edited.

    Raises:
        ValueError: the spec does not compile.
    """
    for key in spec.keys:
        if not any(len(getattr(key, name)) for name in _KEY_VALUES):
            spec.compile()
            return


def name_keyframes(spec: mujoco.MjSpec) -> None:
    """Give keyframes without a name one, so that they differ where the spec is attached."""
    taken = {key.name for key in spec.keys}
    for i, key in enumerate(spec.keys):
        if not key.name:
            key.name = free_name(f"key_{i}", taken)
            taken.add(key.name)
