"""Control laws of actuators in a graph, by the name of the actuator's class."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from manyworlds.share.values import Value

Law = Callable[[Mapping[str, np.ndarray], Mapping[str, Value], Value, Value], Value]
"""Function from parameters, targets by quantity, positions and velocities to efforts, all [n]."""


def _torque(
    params: Mapping[str, np.ndarray], cmd: Mapping[str, Value], pos: Value, vel: Value
) -> Value:
    """Return `tau* + kp (q* - q) + kd (v* - v)`, as `pd_torque`."""
    effort = cmd["effort"] + (cmd["position"] - pos) * params["stiffness"]
    return effort + (cmd["velocity"] - vel) * params["damping"]


def _ideal_pd(
    params: Mapping[str, np.ndarray], cmd: Mapping[str, Value], pos: Value, vel: Value
) -> Value:
    limit = params["force_limit"]
    return _torque(params, cmd, pos, vel).clip(-limit, limit)


def _dc_motor(
    params: Mapping[str, np.ndarray], cmd: Mapping[str, Value], pos: Value, vel: Value
) -> Value:
    """Limit the effort by the torque-speed curve, as `dc_motor_clip`."""
    saturation = params["saturation_effort"]
    limit = params["force_limit"]
    slope = (vel / params["velocity_limit_motor"]) * saturation
    top = (-slope + saturation).clip(-limit, limit)
    bottom = (-slope - saturation).clip(-limit, limit)
    return _torque(params, cmd, pos, vel).maximum(bottom).minimum(top)


LAWS: dict[str, Law] = {"IdealPdActuator": _ideal_pd, "DcMotorActuator": _dc_motor}
"""Laws by the name of the actuator's class."""
