"""A pole on a cart, with the dimensions of the classic benchmark.

Masses, lengths, joint range and motor follow the cartpole of the DeepMind Control Suite
(Tassa et al., 2018, arXiv:1801.00690): a cart of 1 kg on a rail of +-1.8 m, pushed by at most 10 N,
and a pole of 1 m and 0.1 kg.
"""

from __future__ import annotations

import mujoco

from manyworlds.actuator import BuiltinMotorActuatorCfg
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg

RAIL_HALF_LENGTH = 1.8
"""Largest distance of the cart from the middle of the rail [m]."""
POLE_LENGTH = 1.0
"""Length of the pole [m]."""
CART_MASS = 1.0
"""Mass of the cart [kg]."""
POLE_MASS = 0.1
"""Mass of the pole [kg]."""
MOTOR_FORCE = 10.0
"""Largest force of the motor on the cart [N]."""
SLIDER_DAMPING = 5e-4
"""Damping of the cart [N s/m]."""
HINGE_DAMPING = 2e-6
"""Damping of the pole's hinge [N m s/rad]."""

_RAIL_HEIGHT = 1.0  # [m]


def cartpole_spec() -> mujoco.MjSpec:
    """Build the cart, its pole, and the rails.

    The slider is zero in the middle of the rail; the hinge is zero with the pole upright.
    """
    spec = mujoco.MjSpec()
    base = spec.worldbody.add_body(name="rail", pos=(0.0, 0.0, _RAIL_HEIGHT))
    for name, side in (("rail_left", -1), ("rail_right", 1)):
        base.add_geom(
            name=name,
            type=mujoco.mjtGeom.mjGEOM_CAPSULE,
            fromto=(
                -RAIL_HALF_LENGTH - 0.2,
                0.07 * side,
                0,
                RAIL_HALF_LENGTH + 0.2,
                0.07 * side,
                0,
            ),
            size=(0.02, 0, 0),
            mass=1.0,
            contype=0,
            conaffinity=0,
            rgba=(0.35, 0.38, 0.42, 1.0),
        )
    cart = base.add_body(name="cart")
    cart.add_joint(
        name="slider",
        type=mujoco.mjtJoint.mjJNT_SLIDE,
        axis=(1, 0, 0),
        limited=True,
        range=(-RAIL_HALF_LENGTH, RAIL_HALF_LENGTH),
        damping=SLIDER_DAMPING,
        solref_limit=(0.08, 1.0),
    )
    cart.add_geom(
        name="cart",
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=(0.2, 0.15, 0.1),
        mass=CART_MASS,
        contype=0,
        conaffinity=0,
        rgba=(0.16, 0.33, 0.62, 1.0),
    )
    pole = cart.add_body(name="pole")
    pole.add_joint(
        name="hinge_1", type=mujoco.mjtJoint.mjJNT_HINGE, axis=(0, 1, 0), damping=HINGE_DAMPING
    )
    pole.add_geom(
        name="pole",
        type=mujoco.mjtGeom.mjGEOM_CAPSULE,
        fromto=(0, 0, 0, 0, 0, POLE_LENGTH),
        size=(0.045, 0, 0),
        mass=POLE_MASS,
        contype=0,
        conaffinity=0,
        rgba=(0.86, 0.55, 0.16, 1.0),
    )
    return spec


def cartpole_cfg(hinge_angle: float = 0.0) -> EntityCfg:
    """Configure a cartpole that starts with its pole at `hinge_angle` [rad] from upright."""
    return EntityCfg(
        spec_fn=cartpole_spec,
        init_state=EntityCfg.InitialStateCfg(joint_pos={"slider": 0.0, "hinge_1": hinge_angle}),
        articulation=EntityArticulationInfoCfg(
            actuators=(
                BuiltinMotorActuatorCfg(target_names_expr=("slider",), effort_limit=MOTOR_FORCE),
            ),
        ),
    )
