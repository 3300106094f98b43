"""Checks of a simulation's options, made before anything is built."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyworlds.sim.sim import MujocoCfg, SimulationCfg

_CHOICES = {
    "broadphase": ("nxn", "sap_tile", "sap_segmented"),
    "broadphase_filter": ("plane", "sphere", "aabb", "obb"),
}
# Options of the warp engine, and the value that asks for nothing.
_WARP_ONLY = {
    "nconmax": None,
    "njmax": None,
    "broadphase": None,
    "broadphase_filter": None,
    "contact_sensor_maxmatch": 64,
}
_MINIMA = {"num_threads": 0, "nconmax": 0, "njmax": 0, "contact_sensor_maxmatch": 1}
_MUJOCO_MINIMA = {"iterations": 0, "ls_iterations": 0, "ccd_iterations": 0}
_POSITIVE = ("timestep", "impratio")
_NOT_NEGATIVE = ("tolerance", "ls_tolerance")


def check_options(cfg: SimulationCfg) -> None:
    """Refuse values that no engine can use.

    Raises:
        ValueError: names the first such option, its value and the bound.
    """
    if cfg.ls_parallel is not None:
        warnings.warn(
            "SimulationCfg.ls_parallel is deprecated and has no effect: leave it out.",
            DeprecationWarning,
            stacklevel=3,
        )
    for name, least in _MINIMA.items():
        _check_least("SimulationCfg", name, getattr(cfg, name), least)
    for name, choices in _CHOICES.items():
        value = getattr(cfg, name)
        for choice in (value,) if isinstance(value, str) else value or ():
            if choice not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, got '{choice}'.")
    if cfg.mujoco is not None:
        _check_mujoco(cfg.mujoco)


def check_timestep(timestep: float) -> None:
    """Refuse a compiled model whose time does not advance."""
    if not (timestep > 0 and math.isfinite(timestep)):
        raise ValueError(
            f"The model's opt.timestep must be positive and finite, got {timestep}: set it in the "
            "model, or give SimulationCfg.mujoco."
        )


def _check_mujoco(cfg: MujocoCfg) -> None:
    for name in _POSITIVE:
        value = getattr(cfg, name)
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"MujocoCfg.{name} must be positive and finite, got {value}.")
    for name in _NOT_NEGATIVE:
        if not getattr(cfg, name) >= 0:
            raise ValueError(f"MujocoCfg.{name} must not be negative, got {getattr(cfg, name)}.")
    for name, least in _MUJOCO_MINIMA.items():
        _check_least("MujocoCfg", name, getattr(cfg, name), least)
    if len(cfg.gravity) != 3 or not all(map(math.isfinite, cfg.gravity)):
        raise ValueError(f"MujocoCfg.gravity must be three finite numbers, got {cfg.gravity}.")


def _check_least(owner: str, name: str, value: int | None, least: int) -> None:
    if value is not None and value < least:
        raise ValueError(f"{owner}.{name} must be at least {least}, got {value}.")


def refuse_warp_options(cfg: SimulationCfg) -> None:
    """Say which options the native engine does not have.

    With engine='auto' the same configuration is meant for both engines, so that is a warning.

    Raises:
        ValueError: an option of the warp engine was set together with engine='native'.
    """
    for name, unset in _WARP_ONLY.items():
        if (value := getattr(cfg, name)) == unset:
            continue
        message = (
            f"SimulationCfg.{name} is an option of the warp engine, got {value!r} with the native "
            f"engine, which has no such thing: leave it at {unset}, or use engine='warp'."
        )
        if cfg.engine == "native":
            raise ValueError(message)
        warnings.warn(message, stacklevel=4)
