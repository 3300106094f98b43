"""Position control of a robot's joints, from the properties of its motors."""

from __future__ import annotations

import math

from manyworlds.actuator import BuiltinPositionActuatorCfg
from manyworlds.spec.config import CollisionCfg
from manyworlds.spec.transmissions import ElectricActuator

# With these gains, each joint with only its rotor is an overdamped spring of this frequency.
_OMEGA = 2.0 * math.pi * 10.0  # [rad/s]
_DAMPING_RATIO = 2.0


def position_control(
    *names: str, motor: ElectricActuator, motors: int = 1
) -> BuiltinPositionActuatorCfg:
    """Configure position control of joints, each driven by one or several equal motors.

    Args:
        *names: regular expressions of joint names.
        motor: one of the motors.
        motors: number of motors that share the load of each joint.
    """
    inertia = motors * motor.reflected_inertia
    return BuiltinPositionActuatorCfg(
        target_names_expr=names,
        stiffness=inertia * _OMEGA**2,
        damping=2.0 * _DAMPING_RATIO * inertia * _OMEGA,
        effort_limit=motors * motor.effort_limit,
        armature=inertia,
    )


def action_scale(actuators: tuple[BuiltinPositionActuatorCfg, ...]) -> dict[str, float]:
    """Return the position offset for a quarter of the largest effort, by joint [rad or m]."""
    return {
        name: 0.25 * cfg.effort_limit / cfg.stiffness
        for cfg in actuators
        for name in cfg.target_names_expr
        if cfg.effort_limit is not None
    }


def leg_collisions(feet: str, condim: int) -> CollisionCfg:
    """Configure feet with friction, and all other geoms with frictionless contacts."""
    return CollisionCfg(
        geom_names_expr=(".*_collision[0-9]*",),
        condim={feet: condim, ".*": 1},
        priority={feet: 1},
        friction={feet: (0.6,)},
    )
