"""Third-party robots that tests use where they are at hand."""

from __future__ import annotations

import os
from pathlib import Path

import mujoco
import pytest

_VARIABLE = "MANYWORLDS_ROBOTS"
_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "robots"


def use_robots_beside_the_project() -> None:
    """Set MANYWORLDS_ROBOTS to the folder beside the project, if it exists and nothing is set."""
    if _BESIDE.is_dir():
        os.environ.setdefault(_VARIABLE, str(_BESIDE))


def robot_file(name: str) -> Path:
    """Find a robot's MJCF file such as `unitree_go1/go1.xml`, or skip the test that asks for it."""
    path = Path(os.environ.get(_VARIABLE, _BESIDE)) / name
    if not path.is_file():
        pytest.skip(f"{path} is absent: point {_VARIABLE} at a folder of robots")
    return path


def robot_on_floor(name: str) -> mujoco.MjModel:
    """Compile a robot's MJCF file with a floor at z = 0 added."""
    spec = mujoco.MjSpec.from_file(str(robot_file(name)))
    spec.worldbody.add_geom(
        name="test_floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5.0, 5.0, 0.1]
    )
    return spec.compile()
