"""Robots that others made: their models are yours to get, what the tasks need besides is here."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import mujoco

from manyworlds.asset_zoo.motors import action_scale, leg_collisions, position_control
from manyworlds.asset_zoo.quadruped import QUADRUPED_ACTION_SCALE, get_quadruped_cfg
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.utils.actuator import ElectricActuator

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

# The maker's motors.
_G1_5020 = ElectricActuator(reflected_inertia=0.003609725, velocity_limit=37.0, effort_limit=25.0)
_G1_7520_14 = ElectricActuator(
    reflected_inertia=0.010177520, velocity_limit=32.0, effort_limit=88.0
)
_G1_7520_22 = ElectricActuator(
    reflected_inertia=0.025101925, velocity_limit=20.0, effort_limit=139.0
)
_G1_4010 = ElectricActuator(reflected_inertia=0.00425, velocity_limit=22.0, effort_limit=5.0)
_G1_ACTUATORS = (
    position_control(
        ".*_elbow_joint",
        ".*_shoulder_pitch_joint",
        ".*_shoulder_roll_joint",
        ".*_shoulder_yaw_joint",
        ".*_wrist_roll_joint",
        motor=_G1_5020,
    ),
    position_control(
        ".*_hip_pitch_joint", ".*_hip_yaw_joint", "waist_yaw_joint", motor=_G1_7520_14
    ),
    position_control(".*_hip_roll_joint", ".*_knee_joint", motor=_G1_7520_22),
    position_control(".*_wrist_pitch_joint", ".*_wrist_yaw_joint", motor=_G1_4010),
    # Parallel linkages: two motors move both axes.
    position_control("waist_pitch_joint", "waist_roll_joint", motors=2, motor=_G1_5020),
    position_control(".*_ankle_pitch_joint", ".*_ankle_roll_joint", motors=2, motor=_G1_5020),
)
G1_ACTION_SCALE = action_scale(_G1_ACTUATORS)
"""Position offset of a unit action by joint name [rad]."""


def get_go1_robot_cfg() -> EntityCfg:
    """Configure Unitree's Go1, standing, with position control of its 12 joints."""
    return replace(get_quadruped_cfg(), spec_fn=lambda: third_party_spec("unitree_go1"))


def get_g1_robot_cfg() -> EntityCfg:
    """Configure Unitree's G1, knees bent, with position control of its 29 joints."""
    return EntityCfg(
        spec_fn=lambda: third_party_spec("unitree_g1"),
        init_state=EntityCfg.InitialStateCfg(
            pos=(0.0, 0.0, 0.76),
            joint_pos={
                ".*_hip_pitch_joint": -0.3,
                ".*_knee_joint": 0.6,
                ".*_ankle_pitch_joint": -0.3,
                ".*_elbow_joint": 0.6,
                "left_shoulder_roll_joint": 0.2,
                "right_shoulder_roll_joint": -0.2,
                ".*_shoulder_pitch_joint": 0.2,
            },
        ),
        articulation=EntityArticulationInfoCfg(
            actuators=_G1_ACTUATORS, soft_joint_pos_limit_factor=0.9
        ),
        collisions=(leg_collisions("^(left|right)_foot[1-7]_collision$", condim=3),),
    )
