"""Validation of a simulation's options before anything is built."""

from __future__ import annotations

import math
import warnings
from numbers import Real
from typing import TYPE_CHECKING, Any

import mujoco

from manyworlds.utils.nan_guard import NanGuardCfg
from manyworlds.validation.checks import check_count, choose

if TYPE_CHECKING:
    from manyworlds.sim.config import MujocoCfg, SimulationCfg

ENUMS: dict[str, dict[str, Any]] = {
    "integrator": {
        "euler": mujoco.mjtIntegrator.mjINT_EULER,
        "implicitfast": mujoco.mjtIntegrator.mjINT_IMPLICITFAST,
    },
    "cone": {
        "pyramidal": mujoco.mjtCone.mjCONE_PYRAMIDAL,
        "elliptic": mujoco.mjtCone.mjCONE_ELLIPTIC,
    },
    "jacobian": {
        "auto": mujoco.mjtJacobian.mjJAC_AUTO,
        "dense": mujoco.mjtJacobian.mjJAC_DENSE,
        "sparse": mujoco.mjtJacobian.mjJAC_SPARSE,
    },
    "solver": {
        "newton": mujoco.mjtSolver.mjSOL_NEWTON,
        "cg": mujoco.mjtSolver.mjSOL_CG,
        "pgs": mujoco.mjtSolver.mjSOL_PGS,
    },
}
SCALARS = (
    "timestep",
    "impratio",
    "iterations",
    "tolerance",
    "ls_iterations",
    "ls_tolerance",
    "ccd_iterations",
)
_CHOICES = {
    "broadphase": ("nxn", "sap_tile", "sap_segmented"),
    "broadphase_filter": ("plane", "sphere", "aabb", "obb"),
}
# Options of the warp engine, with their values when unset.
_WARP_ONLY = {
    "nconmax": None,
    "njmax": None,
    "broadphase": None,
    "broadphase_filter": None,
    "contact_sensor_maxmatch": 64,
}
_MINIMA = {"num_threads": 0, "nconmax": 0, "njmax": 0, "contact_sensor_maxmatch": 1}
_OPTIONAL = ("nconmax", "njmax")
_MUJOCO_MINIMA = {"iterations": 0, "ls_iterations": 0, "ccd_iterations": 0}
_POSITIVE = ("timestep", "impratio")
_NOT_NEGATIVE = ("tolerance", "ls_tolerance")


def check_options(cfg: SimulationCfg) -> None:
    """Check that the engines can use the options of a configuration.

    Raises:
        ValueError: an option is invalid; the message has its name, value and bound.
    """
    if cfg.ls_parallel is not None:
        warnings.warn(
            "SimulationCfg.ls_parallel is deprecated and has no effect: leave it out.",
            DeprecationWarning,
            stacklevel=3,
        )
    for name, least in _MINIMA.items():
        value = getattr(cfg, name)
        if value is not None or name not in _OPTIONAL:
            check_count(f"SimulationCfg.{name}", value, least)
    for name, choices in _CHOICES.items():
        value = getattr(cfg, name)
        if not value:
            continue
        if not isinstance(value, tuple | list):
            value = (value,)
        for choice in value:
            if choice not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, got '{choice}'.")
    if not isinstance(cfg.nan_guard, NanGuardCfg):
        name = type(cfg.nan_guard).__name__
        raise TypeError(f"SimulationCfg.nan_guard must be a NanGuardCfg, got {name}: leave it out.")
    if cfg.mujoco is not None:
        check_mujoco(cfg.mujoco)


def check_timestep(timestep: float) -> None:
    """Check that a compiled model's timestep is positive and finite."""
    if not (timestep > 0 and math.isfinite(timestep)):
        raise ValueError(
            f"The model's opt.timestep must be positive and finite, got {timestep}: set it in the "
            "model, or give SimulationCfg.mujoco."
        )


def check_mujoco(cfg: MujocoCfg) -> None:
    """Check that MuJoCo can step with the physics options.

    Raises:
        ValueError: an option is invalid; the message has its name, value and bound.
    """
    if not hasattr(cfg, "timestep"):
        name = type(cfg).__name__
        raise TypeError(
            f"SimulationCfg.mujoco must be a MujocoCfg, got {name}: give None to keep the model's."
        )
    for name in _POSITIVE + _NOT_NEGATIVE:
        value = getattr(cfg, name)
        if not isinstance(value, Real) or isinstance(value, bool):
            raise ValueError(f"MujocoCfg.{name} must be a number, got {value!r}.")
        value = float(value)
        if name in _POSITIVE and not (value > 0 and math.isfinite(value)):
            raise ValueError(f"MujocoCfg.{name} must be positive and finite, got {value}.")
        if not value >= 0:
            raise ValueError(f"MujocoCfg.{name} must not be negative, got {value}.")
    for name, least in _MUJOCO_MINIMA.items():
        check_count(f"MujocoCfg.{name}", getattr(cfg, name), least)
    try:
        finite = len(cfg.gravity) == 3 and all(map(math.isfinite, cfg.gravity))
    except TypeError:
        finite = False
    if not finite:
        raise ValueError(f"MujocoCfg.gravity must be three finite numbers, got {cfg.gravity}.")
    for name in ("disableflags", "enableflags"):
        value = getattr(cfg, name)
        if isinstance(value, str):
            raise ValueError(
                f"MujocoCfg.{name} must be a tuple of names, got '{value}': write ('{value}',)."
            )


def refuse_warp_options(cfg: SimulationCfg) -> None:
    """Reject options of the warp engine that are set for the native engine.

    With engine='auto' one configuration serves both engines, so such an option only warns.

    Raises:
        ValueError: an option of the warp engine is set together with engine='native'.
    """
    for name, unset in _WARP_ONLY.items():
        value = getattr(cfg, name)
        if value == unset:
            continue
        message = (
            f"SimulationCfg.{name} is an option of the warp engine, got {value!r} with the native "
            f"engine, which does not support it: leave it at {unset}, or use engine='warp'."
        )
        if cfg.engine == "native":
            raise ValueError(message)
        warnings.warn(message, stacklevel=4)


def flag_bits(option: str, names: tuple[str, ...]) -> int:
    """Return the combined bits of flags, named as in MJCF."""
    enum, prefix = {
        "disableflags": (mujoco.mjtDisableBit, "mjDSBL_"),
        "enableflags": (mujoco.mjtEnableBit, "mjENBL_"),
    }[option]
    members = {k: int(v) for k, v in enum.__members__.items() if k.startswith(prefix)}
    bits = {k.removeprefix(prefix).lower(): v for k, v in members.items()}
    return sum({choose(option, name, bits) for name in names})
