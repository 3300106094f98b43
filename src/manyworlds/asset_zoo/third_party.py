"""Third-party robots: users provide the models, this module the configuration that tasks need.

Go1, G1 and YAM are controlled like this package's robots with the same dimensions, and their
elements have the same names, so that they work in the same tasks.
"""

from __future__ import annotations

import importlib
import os
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import mujoco

from manyworlds.asset_zoo.arm import ARM_ACTION_SCALE, carried, get_arm_cfg
from manyworlds.asset_zoo.humanoid import HUMANOID_ACTION_SCALE, get_humanoid_cfg
from manyworlds.asset_zoo.name_map import NameMap, apply_name_map
from manyworlds.asset_zoo.quadruped import LEGS, QUADRUPED_ACTION_SCALE, get_quadruped_cfg
from manyworlds.entity import EntityCfg
from manyworlds.utils.extras import install_command

ROBOTS_VARIABLE = "MANYWORLDS_ROBOTS"
"""Environment variable with the folder of third-party robots."""


class _Robot(NamedTuple):
    file: str
    """Path of the MJCF file, relative to the folder of robots."""
    description: str
    """Module of robot_descriptions."""
    names: NameMap


_ROBOTS = {
    "unitree_go1": _Robot(
        "unitree_go1/go1.xml",
        "go1_mj_description",
        NameMap(
            geom={leg: f"{leg}_foot_collision" for leg in LEGS},
            feet={leg: f"{leg}_foot_collision" for leg in LEGS},
            imu="imu",
        ),
    ),
    "unitree_g1": _Robot(
        "unitree_g1/g1.xml",
        "g1_mj_description",
        NameMap(
            collisions={
                f"{side}_ankle_roll_link": f"{side}_foot{{}}_collision"
                for side in ("left", "right")
            },
            imu="imu_in_pelvis",
        ),
    ),
    "i2rt_yam": _Robot("i2rt_yam/yam.xml", "yam_mj_description", NameMap()),
}


def robots_folder() -> Path | None:
    """Return the folder that $MANYWORLDS_ROBOTS names, which need not exist, or None."""
    folder = os.environ.get(ROBOTS_VARIABLE)
    if not folder:
        return None
    return Path(folder)


def third_party_file(name: str) -> Path:
    """Return a robot's MJCF file.

    It is looked for in `robots_folder()`, then in MuJoCo Menagerie's folder on this machine, and
    else downloaded by robot_descriptions.

    Args:
        name: unitree_go1, unitree_g1 or i2rt_yam.

    Raises:
        ValueError: no robot has this name.
        FileNotFoundError: the file is in none of these places.
    """
    if name not in _ROBOTS:
        raise ValueError(f"There is no third-party robot '{name}': choose one of {[*_ROBOTS]}.")
    robot = _ROBOTS[name]
    folder = robots_folder()
    place = f"{ROBOTS_VARIABLE} is not set"
    if folder is not None:
        path = folder / robot.file
        if path.is_file():
            return path
        place = f"was not found at {path}"
    copy = _menagerie_copy(name)
    if copy:
        return copy
    module = f"robot_descriptions.{robot.description}"
    try:
        return Path(importlib.import_module(module).MJCF_PATH)
    except Exception as error:  # The import clones a repository, which raises git's own errors.
        reason = f"{module} could not download it"
        if isinstance(error, ModuleNotFoundError):
            reason = "the package robot_descriptions, which downloads it, is not installed"
        raise FileNotFoundError(
            f"The model of '{name}' is not part of this package, {place}, MuJoCo Menagerie has no "
            f"copy of it on this machine, and {reason}: set {ROBOTS_VARIABLE} or MENAGERIE_ROOT to "
            f"the folder that has {robot.file}, or run {install_command('robots')}."
        ) from error


def _menagerie_copy(name: str) -> Path | None:
    """Return a robot's file in $MENAGERIE_ROOT or the cache of mujoco-menagerie; None if absent."""
    try:
        import mujoco_menagerie as menagerie
    except ModuleNotFoundError:
        return None
    cache = menagerie.Cache()
    try:
        entry = menagerie.get(name)
        if cache.root is None and not cache.is_cached(entry):
            return None  # to look for a file is not to download it
        path = Path(entry.xml(entry.default_model, cache))
    except menagerie.MenagerieError:
        return None
    if not path.is_file():
        return None
    return path


def third_party_spec(name: str) -> mujoco.MjSpec:
    """Load a robot's MJCF model, with element names as tasks expect them.

    Args:
        name: unitree_go1, unitree_g1 or i2rt_yam.

    Raises:
        ValueError: no robot has this name.
        FileNotFoundError: the file is not in the folder of robots and cannot be downloaded.
    """
    spec = mujoco.MjSpec.from_file(str(third_party_file(name)))
    return apply_name_map(spec, _ROBOTS[name].names)


GO1_ACTION_SCALE = QUADRUPED_ACTION_SCALE
"""Position offset of a unit action by joint name [rad]."""

G1_ACTION_SCALE = HUMANOID_ACTION_SCALE
"""Position offset of a unit action by joint name [rad]."""

YAM_ACTION_SCALE = ARM_ACTION_SCALE
"""Position offset of a unit action by joint name [rad; the finger's in m]."""


def get_go1_robot_cfg() -> EntityCfg:
    """Configure Unitree's Go1, standing, with position control of its 12 joints."""
    return replace(get_quadruped_cfg(), spec_fn=lambda: third_party_spec("unitree_go1"))


def get_g1_robot_cfg() -> EntityCfg:
    """Configure Unitree's G1, knees bent, with position control of its 29 joints."""
    return replace(get_humanoid_cfg(), spec_fn=lambda: third_party_spec("unitree_g1"))


def get_yam_robot_cfg() -> EntityCfg:
    """Configure I2RT's YAM, gripper forward and open, with position control and without gravity."""
    return replace(get_arm_cfg(), spec_fn=lambda: carried(third_party_spec("i2rt_yam")))
