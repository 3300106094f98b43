"""MuJoCo's options where the models of several robots set them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from manyworlds.utils.table import render_table


def resolve_options(
    wanted: Mapping[str, Mapping[str, ArrayLike]],
    option: mujoco.MjOption,
    priority: Sequence[str] = (),
) -> dict[str, str]:
    """Write the options that robots' own models set into those of a scene.

    MuJoCo drops the options of a model that is attached to another. An option that one robot sets
    applies to the scene; if several set it differently, the value of the first robot applies.

    Args:
        wanted: options by robot, and then by their names in `mujoco.MjOption`.
        option: options of the scene, modified in place.
        priority: robots that come before the others, in this order.

    Returns:
        The robot whose value applies, by option.

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
            f"Robots set MuJoCo's options differently; these apply: {'; '.join(conflicts)}. Name "
            "the robots in order of `priority`, or give options for the whole scene.",
            stacklevel=3,
        )
    return sources


def set_option(option: mujoco.MjOption, name: str, value: ArrayLike) -> None:
    """Change one of MuJoCo's options.

    Raises:
        ValueError: the timestep is not positive.
        TypeError: the value has the wrong type.
    """
    if name == "timestep" and not np.asarray(value) > 0.0:
        raise ValueError(f"The timestep must be above 0 s, got {value}.")
    current = getattr(option, name)
    if isinstance(current, np.ndarray):
        current[:] = value
    else:
        setattr(option, name, value)


def read_options(option: mujoco.MjOption) -> dict[str, np.ndarray]:
    """Return copies of all of MuJoCo's options by name, each of its own shape."""
    names = [name for name in dir(option) if not name.startswith("_")]
    return {name: np.copy(getattr(option, name)) for name in names}


def explain_options(
    compiled: Mapping[str, ArrayLike],
    sources: Mapping[str, str],
    given: Mapping[str, ArrayLike],
    now: mujoco.MjOption,
) -> str:
    """Return a table of the options that are not MuJoCo's defaults, and their sources.

    Each column overrides those to its left.

    Args:
        compiled: options of the compiled model, by name.
        sources: robot that set each option, by option, where it is known.
        given: options of the lab's configuration.
        now: the present options.
    """
    default = read_options(mujoco.MjModel.from_xml_string("<mujoco/>").opt)
    rows = []
    for name, value in default.items():
        columns, before = [_text(value)], value
        for new, who in (
            (compiled[name], sources.get(name, "")),
            (given.get(name), ""),
            (getattr(now, name), ""),
        ):
            if new is None or np.array_equal(new, before):
                columns.append("")
                continue
            columns.append(_text(np.asarray(new)) + (f" ({who})" if who else ""))
            before = new
        if any(columns[1:]):
            rows.append([name, *columns])
    return render_table("Options", ("option", "MuJoCo", "model", "LabCfg", "changed since"), rows)


def _text(value: ArrayLike) -> str:
    return str(value.tolist() if isinstance(value, np.ndarray) else value)
