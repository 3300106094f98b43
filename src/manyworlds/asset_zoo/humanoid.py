"""A humanoid with 29 joints, 1.3 m tall.

Dimensions, inertias, joint limits and motor figures are those of Unitree's G1 (29 joints, revision
1.0), published in `robots/g1_description` of github.com/unitreerobotics/unitree_ros (BSD-3-Clause).
The geoms are new. Left and right are exact mirror images. The centers of mass of waist and
torso lie in the plane of symmetry; in the source, they are up to 0.3 mm off. Where the limbs of
the source differ (shoulder positions by 0.01 mm, a product of inertia of the knees by its sign),
both sides follow the left limb.
"""

from __future__ import annotations

import copy

from manyworlds.asset_zoo.humanoid_links import get_spec
from manyworlds.asset_zoo.motors import action_scale, leg_collisions, position_control
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.spec.transmissions import ElectricActuator

__all__ = [
    "FEET",
    "HUMANOID_ACTION_SCALE",
    "HUMANOID_ACTUATORS",
    "get_humanoid_cfg",
    "get_spec",
]

FEET = ("left_foot", "right_foot")
"""Sites on the soles of the feet."""

# The manufacturer's motors at their gear outputs. Rotor and gear carrier inertias are by motor
# name; speeds and torques are those of g1_29dof_rev_1_0.urdf.
_5020 = ElectricActuator(reflected_inertia=0.003609725, velocity_limit=37.0, effort_limit=25.0)
_7520_14 = ElectricActuator(reflected_inertia=0.010177520, velocity_limit=32.0, effort_limit=88.0)
_7520_22 = ElectricActuator(reflected_inertia=0.025101925, velocity_limit=20.0, effort_limit=139.0)
_4010 = ElectricActuator(reflected_inertia=0.00425, velocity_limit=22.0, effort_limit=5.0)

HUMANOID_ACTUATORS = (
    position_control(
        ".*_elbow_joint",
        ".*_shoulder_pitch_joint",
        ".*_shoulder_roll_joint",
        ".*_shoulder_yaw_joint",
        ".*_wrist_roll_joint",
        motor=_5020,
    ),
    position_control(".*_hip_pitch_joint", ".*_hip_yaw_joint", "waist_yaw_joint", motor=_7520_14),
    position_control(".*_hip_roll_joint", ".*_knee_joint", motor=_7520_22),
    position_control(".*_wrist_pitch_joint", ".*_wrist_yaw_joint", motor=_4010),
    # Parallel linkages: two motors drive both axes.
    position_control("waist_pitch_joint", "waist_roll_joint", motors=2, motor=_5020),
    position_control(".*_ankle_pitch_joint", ".*_ankle_roll_joint", motors=2, motor=_5020),
)
"""Position actuators of all joints."""
HUMANOID_ACTION_SCALE = action_scale(HUMANOID_ACTUATORS)
"""Position offset of a unit action by joint name [rad]."""


def get_humanoid_cfg() -> EntityCfg:
    """Configure the robot, knees bent, with position control of its 29 joints."""
    return EntityCfg(
        spec_fn=get_spec,
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
            actuators=copy.deepcopy(HUMANOID_ACTUATORS), soft_joint_pos_limit_factor=0.9
        ),
        collisions=(leg_collisions("^(left|right)_foot[0-9]_collision$", condim=3),),
    )
