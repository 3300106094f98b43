"""Versions and sizes of a lab, for reports of faults."""

from __future__ import annotations

import platform

import mujoco

from manyworlds.lab.world.world import World
from manyworlds.utils.extras import installed_version, own_version

_EXTRAS = ("mcap", "onnxruntime", "viser")
_SIZES = ("nq", "nv", "nu")


def describe_installation() -> dict[str, object]:
    """Return versions; those of extras that are not installed are empty."""
    return {
        "manyworlds": own_version(),
        "mujoco": mujoco.mj_versionString(),
        "python": platform.python_version(),
        "extras": {name: installed_version(name) for name in _EXTRAS},
    }


def describe_model(world: World) -> dict[str, object]:
    """Return robots, sizes, time step and hash of a world's model."""
    return {
        "robots": list(world.robots),
        **{size: getattr(world.model, size) for size in _SIZES},
        "timestep": world.model.opt.timestep,
        "model_hash": world.model_hash,
    }
