"""Which of MuJoCo's options count where several models have a say."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import mujoco
import numpy as np


def resolve_options(
    wanted: Mapping[str, Mapping[str, Any]], option: mujoco.MjOption, priority: Sequence[str] = ()
) -> dict[str, str]:
    """Write what robots' own models say about options into those of a scene.

    MuJoCo forgets the options of a model that is attached to another. An option that one robot
    sets counts for all; where several set it differently, the first robot's counts.

    Args:
        wanted: options by robot, and then by their names in `mujoco.MjOption`.
        option: where they are written.
        priority: robots that come before the others, the first of them first.

    Returns:
        Whose word counted, by option.

    Raises:
        ValueError: `priority` names no robot of the scene.
    """
    if unknown := [name for name in priority if name not in wanted]:
        raise ValueError(
            f"priority names '{unknown[0]}', which is not in the scene: it has {', '.join(wanted)}."
        )
    sources: dict[str, str] = {}
    conflicts = []
    for robot in dict.fromkeys([*priority, *wanted]):
        for name, value in wanted[robot].items():
            first = sources.setdefault(name, robot)
            if first == robot:
                set_option(option, name, value)
            elif not np.array_equal(wanted[first][name], value):
                conflicts.append(
                    f"{name} {_text(wanted[first][name])} ('{first}') instead of "
                    f"{_text(value)} ('{robot}')"
                )
    if conflicts:
        warnings.warn(
            f"Robots disagree about MuJoCo's options; these count: {'; '.join(conflicts)}. Name "
            "whose word counts in `priority`, or give options for the whole scene.",
            stacklevel=3,
        )
    return sources


def set_option(option: mujoco.MjOption, name: str, value: Any) -> None:
    """Change one of MuJoCo's options."""
    current = getattr(option, name)
    if isinstance(current, np.ndarray):
        current[:] = value
    else:
        setattr(option, name, value)


def _text(value: Any) -> str:
    return str(value.tolist() if isinstance(value, np.ndarray) else value)
