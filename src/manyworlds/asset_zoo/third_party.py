"""Robots that others made: their models are yours to get, what the tasks need besides is here."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import mujoco

from manyworlds.asset_zoo.humanoid import HUMANOID_ACTION_SCALE, get_humanoid_cfg
from manyworlds.asset_zoo.quadruped import QUADRUPED_ACTION_SCALE, get_quadruped_cfg
from manyworlds.entity import EntityCfg

ROBOTS_VARIABLE = "MANYWORLDS_ROBOTS"
"""Environment variable with the folder of third-party robots."""

_FILES = {
    "unitree_go1": "unitree_go1/go1.xml",
    "unitree_g1": "unitree_g1/g1.xml",
    "i2rt_yam": "i2rt_yam/yam.xml",
}


def robots_folder() -> Path:
    """Folder of third-party robots: $MANYWORLDS_ROBOTS, else ../shared/robots beside the project.

    It need not exist.
    """
    project = Path(__file__).resolve().parents[3]
    return Path(os.environ.get(ROBOTS_VARIABLE) or project.parent / "shared" / "robots")


def has_robot(name: str) -> bool:
    """Whether a robot's model is at hand."""
    return (robots_folder() / _FILES[name]).is_file()


def third_party_spec(name: str) -> mujoco.MjSpec:
    """Load a robot's MJCF model.

    Args:
        name: unitree_go1, unitree_g1 or i2rt_yam.

    Raises:
        ValueError: no robot has this name.
        FileNotFoundError: its file is not there.
    """
    if name not in _FILES:
        raise ValueError(f"There is no third-party robot '{name}': choose one of {[*_FILES]}.")
    path = robots_folder() / _FILES[name]
    if not path.is_file():
        raise FileNotFoundError(
            f"The model of '{name}' is not part of this package and was not found at {path}: put "
            f"its MJCF file and meshes there, or set {ROBOTS_VARIABLE} to the folder that has "
            f"{_FILES[name]}."
        )
    return mujoco.MjSpec.from_file(str(path))


GO1_ACTION_SCALE = QUADRUPED_ACTION_SCALE
"""Position offset of a unit action by joint name [rad]."""

G1_ACTION_SCALE = HUMANOID_ACTION_SCALE
"""Position offset of a unit action by joint name [rad]."""


def get_go1_robot_cfg() -> EntityCfg:
    """Configure Unitree's Go1, standing, with position control of its 12 joints."""
    return replace(get_quadruped_cfg(), spec_fn=lambda: third_party_spec("unitree_go1"))


def get_g1_robot_cfg() -> EntityCfg:
    """Configure Unitree's G1, knees bent, with position control of its 29 joints."""
    return replace(get_humanoid_cfg(), spec_fn=lambda: third_party_spec("unitree_g1"))
