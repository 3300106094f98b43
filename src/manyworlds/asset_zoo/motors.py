"""Position control of a robot's joints, from the figures of its motors."""

from __future__ import annotations

import math

from manyworlds.actuator import BuiltinPositionActuatorCfg
from manyworlds.spec.config import CollisionCfg
from manyworlds.spec.transmissions import ElectricActuator

# Gains make each joint, loaded by its rotor alone, a spring of this frequency, overdamped.
_OMEGA = 2.0 * math.pi * 10.0  # [rad/s]
_DAMPING_RATIO = 2.0


def position_control(
    *names: str, motor: ElectricActuator, motors: int = 1
) -> BuiltinPositionActuatorCfg:
    """Put position control on joints, each moved by some equal motors.

    Args:
        *names: regular expressions of joint names.
        motor: one of the motors.
        motors: how many motors share the work of each joint.
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
    """Position offset at which the actuator gives a quarter of its largest effort [rad or m]."""
    return {
        name: 0.25 * cfg.effort_limit / cfg.stiffness
        for cfg in actuators
        for name in cfg.target_names_expr
        if cfg.effort_limit is not None
    }


def leg_collisions(feet: str, condim: int) -> CollisionCfg:
    """Let feet rub on the ground, and all else merely not get through."""
    return CollisionCfg(
        geom_names_expr=(".*_collision[0-9]*",),
        condim={feet: condim, ".*": 1},
        priority={feet: 1},
        friction={feet: (0.6,)},
    )
