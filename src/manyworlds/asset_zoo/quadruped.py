"""A quadruped with 12 joints, of the size and weight of a large dog.

Dimensions, inertias, joint limits and motor figures are those of Unitree's Go1, published in
`go1_description` of github.com/unitreerobotics/unitree_ros (BSD-3-Clause). The geoms are
new. Left and right are exact mirror images. The source is not quite symmetric: lateral offsets
of the centers of mass of the trunk (2 mm) and the calves (1 mm) are omitted.
"""

from __future__ import annotations

import copy

from manyworlds.asset_zoo.motors import action_scale, leg_collisions, position_control
from manyworlds.asset_zoo.quadruped_links import get_spec
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.spec.transmissions import ElectricActuator, reflected_inertia

__all__ = [
    "FOOT_RADIUS",
    "LEGS",
    "QUADRUPED_ACTION_SCALE",
    "QUADRUPED_ACTUATORS",
    "get_quadruped_cfg",
    "get_spec",
]

FOOT_RADIUS = 0.023
"""Radius of the sphere at the end of the leg, as in `quadruped.xml` [m]."""
LEGS = ("FR", "FL", "RR", "RL")
"""Front and rear, right and left: prefixes of a leg's names, and names of the foot sites."""

# const.xacro: a rotor behind a gear of 6; the linkage to the knee multiplies the ratio by 1.5.
_ROTOR = 0.000111842  # [kg m^2]
_HIP_MOTOR = ElectricActuator(
    reflected_inertia=reflected_inertia(_ROTOR, 6.0), velocity_limit=30.1, effort_limit=23.7
)
_KNEE_MOTOR = ElectricActuator(
    reflected_inertia=reflected_inertia(_ROTOR, 9.0), velocity_limit=20.06, effort_limit=35.55
)
QUADRUPED_ACTUATORS = (
    position_control(".*_hip_joint", ".*_thigh_joint", motor=_HIP_MOTOR),
    position_control(".*_calf_joint", motor=_KNEE_MOTOR),
)
"""Position actuators of all joints."""
QUADRUPED_ACTION_SCALE = action_scale(QUADRUPED_ACTUATORS)
"""Position offset of a unit action by joint name [rad]."""


def get_quadruped_cfg() -> EntityCfg:
    """Configure the robot, standing, with position control of its 12 joints."""
    return EntityCfg(
        spec_fn=get_spec,
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
            actuators=copy.deepcopy(QUADRUPED_ACTUATORS), soft_joint_pos_limit_factor=0.9
        ),
        collisions=(leg_collisions("^[FR][LR]_foot_collision$", condim=6),),
    )
