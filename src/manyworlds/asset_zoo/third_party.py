"""Robots that others made: their models are yours to get, what the tasks need besides is here."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import NamedTuple

import mujoco

from manyworlds.actuator import BuiltinPositionActuatorCfg
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.utils.actuator import reflected_inertia
from manyworlds.utils.spec_config import CollisionCfg

ROBOTS_VARIABLE = "MANYWORLDS_ROBOTS"
"""Environment variable with the folder of third-party robots."""

_FILES = {
    "unitree_go1": "unitree_go1/go1.xml",
    "unitree_g1": "unitree_g1/g1.xml",
    "i2rt_yam": "i2rt_yam/yam.xml",
}
# Gains make each joint, loaded by its rotor alone, a spring of this frequency, overdamped.
_OMEGA = 2.0 * math.pi * 10.0  # [rad/s]
_DAMPING_RATIO = 2.0


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


class _Motor(NamedTuple):
    """A motor as felt behind its gear."""

    armature: float  # [kg m^2]
    effort_limit: float  # [N m]


def _joints(*names: str, motor: _Motor, motors: int = 1) -> BuiltinPositionActuatorCfg:
    """Put position control on joints, each moved by some equal motors.

    Args:
        *names: regular expressions of joint names.
        motor: one of the motors.
        motors: how many motors share the work of each joint.
    """
    inertia = motors * motor.armature
    return BuiltinPositionActuatorCfg(
        target_names_expr=names,
        stiffness=inertia * _OMEGA**2,
        damping=2.0 * _DAMPING_RATIO * inertia * _OMEGA,
        effort_limit=motors * motor.effort_limit,
        armature=inertia,
    )


def _action_scale(actuators: tuple[BuiltinPositionActuatorCfg, ...]) -> dict[str, float]:
    """Position offset at which the actuator gives a quarter of its largest effort [rad]."""
    return {
        name: 0.25 * cfg.effort_limit / cfg.stiffness
        for cfg in actuators
        for name in cfg.target_names_expr
        if cfg.effort_limit is not None
    }


_GO1_ROTOR = 0.000111842  # [kg m^2]
_GO1_ACTUATORS = (
    _joints(
        ".*_hip_joint",
        ".*_thigh_joint",
        motor=_Motor(reflected_inertia(_GO1_ROTOR, 6.0), 23.7),
    ),
    _joints(".*_calf_joint", motor=_Motor(reflected_inertia(_GO1_ROTOR, 9.0), 35.55)),
)
GO1_ACTION_SCALE = _action_scale(_GO1_ACTUATORS)
"""Position offset of a unit action by joint name [rad]."""

# The maker's motors.
_G1_5020 = _Motor(0.003609725, 25.0)
_G1_7520_14 = _Motor(0.010177520, 88.0)
_G1_7520_22 = _Motor(0.025101925, 139.0)
_G1_4010 = _Motor(0.00425, 5.0)
_G1_ACTUATORS = (
    _joints(
        ".*_elbow_joint",
        ".*_shoulder_pitch_joint",
        ".*_shoulder_roll_joint",
        ".*_shoulder_yaw_joint",
        ".*_wrist_roll_joint",
        motor=_G1_5020,
    ),
    _joints(".*_hip_pitch_joint", ".*_hip_yaw_joint", "waist_yaw_joint", motor=_G1_7520_14),
    _joints(".*_hip_roll_joint", ".*_knee_joint", motor=_G1_7520_22),
    _joints(".*_wrist_pitch_joint", ".*_wrist_yaw_joint", motor=_G1_4010),
    # Parallel linkages: two motors move both axes.
    _joints("waist_pitch_joint", "waist_roll_joint", motors=2, motor=_G1_5020),
    _joints(".*_ankle_pitch_joint", ".*_ankle_roll_joint", motors=2, motor=_G1_5020),
)
G1_ACTION_SCALE = _action_scale(_G1_ACTUATORS)
"""Position offset of a unit action by joint name [rad]."""


def _collisions(feet: str, condim: int) -> CollisionCfg:
    """Let feet rub on the ground, and all else merely not get through."""
    return CollisionCfg(
        geom_names_expr=(".*_collision[0-9]*",),
        condim={feet: condim, ".*": 1},
        priority={feet: 1},
        friction={feet: (0.6,)},
    )


def get_go1_robot_cfg() -> EntityCfg:
    """Configure Unitree's Go1, standing, with position control of its 12 joints."""
    return EntityCfg(
        spec_fn=lambda: third_party_spec("unitree_go1"),
        init_state=EntityCfg.InitialStateCfg(
            pos=(0.0, 0.0, 0.278),
            joint_pos={
                ".*R_hip_joint": -0.1,
                ".*L_hip_joint": 0.1,
                ".*_thigh_joint": 0.9,
                ".*_calf_joint": -1.8,
            },
        ),
        articulation=EntityArticulationInfoCfg(
            actuators=_GO1_ACTUATORS, soft_joint_pos_limit_factor=0.9
        ),
        collisions=(_collisions("^[FR][LR]_foot_collision$", condim=6),),
    )


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
        collisions=(_collisions("^(left|right)_foot[1-7]_collision$", condim=3),),
    )
