"""Observation terms of `manyworlds.envs.mdp` in a graph, as `rl.onnx_policy` computes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import mujoco

from manyworlds.rl.policy_description import Params
from manyworlds.sensor.builtin_sensor import ROTATIONS
from manyworlds.share.values import Value
from manyworlds.sim.gravity import plain_gravity_direction

if TYPE_CHECKING:
    from manyworlds.share.control_graph import ControlGraph


def _joint_pos_rel(graph: ControlGraph, params: Params) -> Value:
    names, entity = graph.policy.joints_of(params)
    default = dict(zip(entity["joint_names"], entity["default_joint_pos"], strict=True))
    return graph.positions(names) - [default[name] for name in names]


def _joint_vel_rel(graph: ControlGraph, params: Params) -> Value:
    names, entity = graph.policy.joints_of(params)
    default = dict(zip(entity["joint_names"], entity["default_joint_vel"], strict=True))
    return graph.velocities(names) - [default[name] for name in names]


def _base_ang_vel(graph: ControlGraph, params: Params) -> Value:
    return graph.velocity("xbody", graph.policy.joints_of(params)[1]["root_body"])[:3]


def _base_lin_vel(graph: ControlGraph, params: Params) -> Value:
    return graph.velocity("xbody", graph.policy.joints_of(params)[1]["root_body"])[3:]


def _projected_gravity(graph: ControlGraph, params: Params) -> Value:
    axes = graph.axes("body", graph.policy.joints_of(params)[1]["root_body"])
    return axes.T @ plain_gravity_direction(graph.model.opt)


def _projected_gravity_from_sensor(graph: ControlGraph, params: Params) -> Value:
    model = graph.model
    sensor = model.sensor(params["sensor"]).id
    rotations = graph.data(ROTATIONS[mujoco.mjtObj(model.sensor_reftype[sensor])])
    rotation = rotations[int(model.sensor_refid[sensor])].reshape(3, 3)
    return rotation.T @ plain_gravity_direction(model.opt)


def _builtin_sensor(graph: ControlGraph, params: Params) -> Value:
    sensor = graph.model.sensor(params["sensor"])
    first = int(sensor.adr[0])
    return graph.data("sensordata")[first : first + int(sensor.dim[0])]


def _generated_commands(graph: ControlGraph, params: Params) -> Value:
    return graph.command(params["command_name"])


def _last_action(graph: ControlGraph, params: Params) -> Value:
    name = params.get("action_name")
    if name is None:
        return graph.last_action()
    return graph.last_action()[graph.policy.action_slices[name]]


def _height_scan(graph: ControlGraph, params: Params) -> Value:
    rays = params["rays"]
    miss = params.get("miss_value")
    if miss is None:
        miss = rays["max_distance"]
    frames = rays["frames"]
    distances = graph.rays(params["sensor"], rays).reshape(len(frames), len(rays["offsets"]))
    offsets = graph.constant(rays["offsets"], float)
    directions = graph.constant(rays["directions"], float)
    heights = []
    for row, frame in enumerate(frames):
        # Only the vertical parts of the rays matter, which a turn about the vertical keeps.
        up = graph.constant([0.0, 0.0, 1.0], float)
        if rays["alignment"] not in ("world", "yaw"):
            up = graph.axes(frame["type"], frame["name"])[2]
        distance = distances[row]
        height = graph.position(frame["type"], frame["name"])[2]
        hit = height + offsets @ up + distance * (directions @ up)
        above = height - hit - params.get("offset", 0.0)
        hits = (distance >= 0.0) & (distance <= rays["max_distance"])
        heights.append(graph.where(hits, above, graph.constant(miss, float)))
    return graph.concat(heights)


OBSERVATION_FORMS: dict[str, Callable[[ControlGraph, Params], Value]] = {
    "base_ang_vel": _base_ang_vel,
    "base_lin_vel": _base_lin_vel,
    "builtin_sensor": _builtin_sensor,
    "generated_commands": _generated_commands,
    "height_scan": _height_scan,
    "joint_pos_rel": _joint_pos_rel,
    "joint_vel_rel": _joint_vel_rel,
    "last_action": _last_action,
    "projected_gravity": _projected_gravity,
    "projected_gravity_from_sensor": _projected_gravity_from_sensor,
}
"""Functions that add a term to a graph, by its name in `manyworlds.envs.mdp`."""
