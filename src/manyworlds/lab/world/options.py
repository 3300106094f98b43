"""MuJoCo's options where the models of several robots set them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from manyworlds.utils.table import render_table
from manyworlds.validation.names import near_names

_DEFAULTS = mujoco.MjOption()
_CHOICES = {
    "integrator": mujoco.mjtIntegrator,
    "solver": mujoco.mjtSolver,
    "cone": mujoco.mjtCone,
    "jacobian": mujoco.mjtJacobian,
}
_AT_LEAST_0 = (
    "iterations",
    "ls_iterations",
    "noslip_iterations",
    "ccd_iterations",
    "impratio",
    "density",
    "viscosity",
    "tolerance",
    "sleep_tolerance",
)
FLAGS: Mapping[str, mujoco.mjtDisableBit | mujoco.mjtEnableBit] = {
    name.partition("_")[2].lower(): bit
    for kind in (mujoco.mjtDisableBit, mujoco.mjtEnableBit)
    for name, bit in kind.__members__.items()
    if name.startswith(("mjDSBL_", "mjENBL_"))
}
"""Features of MuJoCo that can be switched on and off, by name: `contact`, `gravity`, `sleep` ..."""


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
    unknown = [name for name in priority if name not in wanted]
    if unknown:
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
        ValueError: there is no such option, or the value is not valid for it.
        TypeError: the value has the wrong type.
    """
    check_option(name, value)
    current = getattr(option, name)
    if isinstance(current, np.ndarray):
        current[:] = value
    else:
        setattr(option, name, type(current)(value))  # type: ignore[arg-type]


def read_option(name: str, value: object) -> object:
    """Return the number of an integrator, cone, solver or Jacobian; other values stay.

    Args:
        name: name of the option in `mujoco.MjOption`.
        value: its value, also as MJCF or MuJoCo's enums name it: `implicitfast`, `mjINT_RK4`.

    Raises:
        ValueError: there is no such choice.
    """
    if not isinstance(value, str) or name not in _CHOICES:
        return value
    members = _CHOICES[name].__members__.items()
    known = {member.partition("_")[2].lower(): int(number) for member, number in members}
    short = value.rpartition("_")[2].lower()
    if short not in known:
        raise ValueError(
            f"The option {name} must be one of {', '.join(known)}, got '{value[:80]}'."
        )
    return known[short]


def check_option(name: str, value: object) -> None:
    """Check the value of one of MuJoCo's options.

    Raises:
        ValueError: there is no such option, or the value is not valid for it.
        TypeError: the value has the wrong type.
    """
    if name.startswith("_") or not hasattr(_DEFAULTS, name):
        close = near_names(name, read_options(_DEFAULTS), most=1)
        hint = f"; did you mean '{close[0]}'?" if close else "."
        raise ValueError(f"MuJoCo has no option '{name}'{hint}")
    default = getattr(_DEFAULTS, name)
    try:
        numbers = np.asarray(value, float)
    except (TypeError, ValueError):
        raise TypeError(f"The option {name} must be a number, got {value!r}.") from None
    if numbers.shape not in ((), np.shape(default)):
        raise ValueError(f"The option {name} has shape {np.shape(default)}, got {value!r}.")
    if not np.isfinite(numbers).all():
        raise ValueError(f"The option {name} must be finite, got {value}.")
    if isinstance(default, int) and float(numbers) != int(numbers):
        raise ValueError(f"The option {name} must be a whole number, got {value}.")
    if name == "timestep" and not numbers > 0.0:
        raise ValueError(f"The timestep must be above 0 s, got {value}.")
    if name in _CHOICES and int(numbers) not in _CHOICES[name].__members__.values():
        known = ", ".join(f"{int(v)} ({n})" for n, v in _CHOICES[name].__members__.items())
        raise ValueError(f"The option {name} must be one of {known}, got {value}.")
    if name in _AT_LEAST_0 and numbers < 0.0:
        raise ValueError(f"The option {name} must be at least 0, got {value}.")


def set_flag(option: mujoco.MjOption, name: str, on: bool) -> None:
    """Switch one of the features of `FLAGS` on or off."""
    bit = FLAGS[name]
    enables = isinstance(bit, mujoco.mjtEnableBit)
    field = "enableflags" if enables else "disableflags"
    mask = int(bit)
    flags = getattr(option, field)
    if on == enables:
        flags |= mask
    else:
        flags &= ~mask
    setattr(option, field, flags)


def read_flag(option: mujoco.MjOption, name: str) -> bool:
    """Return whether one of the features of `FLAGS` is on."""
    bit = FLAGS[name]
    enables = isinstance(bit, mujoco.mjtEnableBit)
    flags = option.enableflags if enables else option.disableflags
    return bool(flags & int(bit)) is enables


def read_options(option: mujoco.MjOption) -> dict[str, np.ndarray]:
    """Return copies of all of MuJoCo's options by name, each of its own shape."""
    names = [name for name in dir(option) if not name.startswith("_")]
    return {name: np.copy(getattr(option, name)) for name in names}


def changed_options(
    option: mujoco.MjOption, before: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the options that differ from former ones by name, each of its own shape."""
    now = read_options(option)
    return {name: value for name, value in now.items() if not np.array_equal(value, before[name])}


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
        columns = [_text(value)]
        before = value
        for new, who in (
            (compiled[name], sources.get(name, "")),
            (given.get(name), ""),
            (getattr(now, name), ""),
        ):
            if new is None or np.array_equal(new, before):
                columns.append("")
                continue
            text = _text(np.asarray(new))
            columns.append(f"{text} ({who})" if who else text)
            before = new
        if any(columns[1:]):
            rows.append([name, *columns])
    return render_table("Options", ("option", "MuJoCo", "model", "LabCfg", "changed since"), rows)


def _text(value: ArrayLike) -> str:
    return str(value.tolist() if isinstance(value, np.ndarray) else value)
