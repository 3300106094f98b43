"""A table-mounted arm with 6 axes and a gripper.

Dimensions, inertias and joint limits are those of I2RT's YAM, published in
github.com/i2rt-robotics/i2rt (MIT), converted to axes that are parallel at zero. The geoms
are new. The fingers are exact mirror images; in the source, one is rotated relative to the other,
which differs by 3 mm in z. The default mass of the source's collision shapes and camera, 0.07 kg,
is omitted.
"""

from __future__ import annotations

import copy
import math

from manyworlds.actuator import BuiltinPositionActuatorCfg
from manyworlds.asset_zoo.arm_links import carried, get_spec
from manyworlds.asset_zoo.motors import action_scale
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.spec.config import CollisionCfg
from manyworlds.spec.transmissions import ElectricActuator

__all__ = ["ARM_ACTION_SCALE", "ARM_ACTUATORS", "PADS", "carried", "get_arm_cfg", "get_spec"]

PADS = "(left|right)_finger_pad_collision|[lr]f_down[0-9]+_collision"
"""Geoms of the finger pads, both this model's and YAM's, as a regular expression."""

# Datasheets of Damiao's DM-J4340-2EC (gear 40) and DM-J4310-2EC (gear 10): speeds and peak torques.
# Rotor inertias are not published; the values are estimates.
_DM4340 = ElectricActuator(reflected_inertia=0.032, velocity_limit=5.5, effort_limit=27.0)
_DM4310 = ElectricActuator(reflected_inertia=0.0018, velocity_limit=20.9, effort_limit=7.0)
# The gripper's rack [kg, m/s, N]; the values are estimates.
_RACK = ElectricActuator(reflected_inertia=0.3, velocity_limit=0.2, effort_limit=30.0)

# With these gains, each joint is a critically damped spring of this frequency, for the inertia in
# the initial pose. They are low, as policies require; gravity compensation carries the weight.
_OMEGA = 2.0 * math.pi * 2.0  # [rad/s]
_STANCE = {"joint2": 1.047, "joint3": 1.047, "left_finger": 0.0375, "right_finger": -0.0375}

# Joint, motor, and the joint's inertia in the initial pose, including the rotor.
_DRIVES = (
    ("joint1", _DM4340, 0.1332),
    ("joint2", _DM4340, 0.3507),
    ("joint3", _DM4340, 0.2470),
    ("joint4", _DM4310, 0.02456),
    ("joint5", _DM4310, 0.00726),
    ("joint6", _DM4310, 0.00269),
    ("left_finger", _RACK, 0.536),
)
ARM_ACTUATORS = tuple(
    BuiltinPositionActuatorCfg(
        target_names_expr=(joint,),
        stiffness=inertia * _OMEGA**2,
        damping=2.0 * inertia * _OMEGA,
        effort_limit=motor.effort_limit,
        armature=motor.reflected_inertia,
    )
    for joint, motor, inertia in _DRIVES
)
"""Position actuators of the joints and of the gripper."""
ARM_ACTION_SCALE = action_scale(ARM_ACTUATORS)
"""Position offset of a unit action by joint name [rad; the finger's in m]."""


def get_arm_cfg() -> EntityCfg:
    """Configure the arm, gripper forward and open, with position control of axes and gripper."""
    return EntityCfg(
        spec_fn=get_spec,
        init_state=EntityCfg.InitialStateCfg(joint_pos=dict(_STANCE)),
        articulation=EntityArticulationInfoCfg(
            actuators=copy.deepcopy(ARM_ACTUATORS), soft_joint_pos_limit_factor=0.9
        ),
        collisions=(
            CollisionCfg(
                geom_names_expr=(".*_collision$",),
                condim={PADS: 6, ".*": 3},
                priority={PADS: 1},
                friction={PADS: (1.0, 5e-3, 5e-4)},
            ),
        ),
    )
