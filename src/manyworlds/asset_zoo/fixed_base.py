"""Robots with a fixed base, such as arms: what a task of reaching needs to know of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from manyworlds.asset_zoo.legged import (
    JointDrive,
    joint_drives,
    name_elements,
    take_default_pose,
)
from manyworlds.asset_zoo.legged_feet import (
    geom_collides,
    lowest_point,
    movable_bodies,
    moved_by,
)
from manyworlds.spec.elements import joint_of

_SAG = 0.1  # deflection of a joint under the largest torque of gravity [rad or m]
_TRIES = 20  # random poses for each point
_ENDLESS = {mujoco.mjtJoint.mjJNT_HINGE: math.pi, mujoco.mjtJoint.mjJNT_SLIDE: 1.0}
"""Half of the range of a joint without limits [rad or m], by its type."""
_LARGEST_SCALE = 1.5  # of an action of 1 [rad or m]


@dataclass(frozen=True, kw_only=True)
class FixedBaseModel:
    """Facts about a robot with a fixed base; names are those that `name_elements` leaves."""

    root: str
    """Body in the world."""
    height: float
    """Height of the file's origin at which nothing is below the ground in the default pose [m]."""
    tip: str
    """Last body before the fingers, if there are fingers."""
    tip_pos: tuple[float, float, float]
    """Point that reaches, in the frame of `tip` [m]."""
    reach: float
    """Largest distance of a reachable point from the root [m]."""
    pose: dict[str, float]
    """Positions of joints in the default pose that are not zero [rad or m]."""
    drives: dict[str, JointDrive]
    """Position control of each joint that has an actuator; of all joints if there are none."""
    scales: dict[str, float]
    """Change of the target for an action of 1, by joint that moves the tip [rad or m]."""
    timestep: float
    """Timestep of the model [s]."""


def has_fixed_base(model: mujoco.MjModel) -> bool:
    """Return whether a model is like an arm: no free joint, and one chain of bodies from its root.

    A root without joints may also be that of a robot with legs or wheels, whose file leaves out the
    free joint; such a robot has several chains.
    """
    if model.nbody < 2 or not model.njnt or mujoco.mjtJoint.mjJNT_FREE in model.jnt_type:
        return False
    driven = {joint_of(model, a) for a in range(model.nu)}
    first = int(model.body_jntadr[1])
    own = range(first, first + int(model.body_jntnum[1]))
    is_loose = any(
        model.jnt_type[j] == mujoco.mjtJoint.mjJNT_SLIDE and j not in driven for j in own
    )
    root = 1 if own else 0
    return not is_loose and len(moved_by(model, root)) <= 1


def derive_fixed_base_model(
    spec: mujoco.MjSpec, effort_limit: float | Mapping[str, float] | None = None
) -> FixedBaseModel:
    """Derive what a task of reaching needs to know about a robot with a fixed base.

    Args:
        spec: the model; unchanged.
        effort_limit: see `derive_legged_model`.

    Raises:
        ValueError: no joint moves the tip, or the largest torque of a joint is not known.
    """
    model = name_elements(spec.copy(), fixed_base=True).compile()
    data = mujoco.MjData(model)
    take_default_pose(model, data)
    mujoco.mj_kinematics(model, data)
    driven = _driven_joints(model)
    tip = _tip(model)
    moving = [j for j in _joints_to(model, tip) if j in driven]
    if not moving:
        raise ValueError(
            f"No joint with an actuator moves the end of the robot, '{model.body(tip).name}': add "
            "actuators to the model."
        )
    lows = [lowest_point(model, data, g) for g in range(model.ngeom) if geom_collides(model, g)]
    pose = {
        model.joint(j).name: round(float(data.qpos[model.jnt_qposadr[j]]), 4)
        for j in range(model.njnt)
        if mujoco.mjtJoint(model.jnt_type[j]) in _ENDLESS
    }
    tip_pos = _end_of(model, data, tip)
    height = max(0.0, -float(min(lows, default=0.0)))
    points = _points(model, data, tip, tip_pos, moving, height, 256)
    stiff = {j: torque / _SAG for j, torque in _torques_of_gravity(model, data, driven).items()}
    drives = dict(joint_drives(model, data, effort_limit, driven, stiff))
    x, y, z = (round(float(value), 4) for value in tip_pos)
    return FixedBaseModel(
        root=model.body(1).name,
        height=round(height, 4),
        tip=model.body(tip).name,
        tip_pos=(x, y, z),
        reach=round(float(np.linalg.norm(points - data.xpos[1], axis=1).max()), 3),
        pose={name: value for name, value in pose.items() if value},
        drives={model.joint(j).name: drives[j] for j in driven},
        scales={model.joint(j).name: _scale(model, j) for j in moving},
        timestep=float(model.opt.timestep),
    )


def reachable_points(
    spec: mujoco.MjSpec,
    tip: str,
    tip_pos: Sequence[float],
    joints: Sequence[str],
    height: float = 0.0,
    count: int = 1024,
) -> np.ndarray:
    """Return points that a robot reaches in random poses above the ground without contacts [m].

    Args:
        spec: the robot, with a fixed base; unchanged.
        tip: body that reaches.
        tip_pos: point of the body that reaches, in its frame [m].
        joints: regular expressions of the joints that move; the others stay in the default pose.
        height: height of the model's origin above the ground [m].
        count: number of points.

    Returns:
        Points relative to the model's origin, shape [count, 3], the same ones in each call.

    Raises:
        ValueError: there are no such poses.
    """
    model = spec.copy().compile()
    data = mujoco.MjData(model)
    take_default_pose(model, data)
    names = [model.joint(j).name for j in range(model.njnt)]
    moving = [j for j, name in enumerate(names) if any(re.fullmatch(p, name) for p in joints)]
    point = np.array(tip_pos, float)
    return _points(model, data, model.body(tip).id, point, moving, height, count)


def _points(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    tip: int,
    tip_pos: np.ndarray,
    moving: Sequence[int],
    height: float,
    count: int,
) -> np.ndarray:
    """Return points that a robot reaches; see `reachable_points`."""
    mujoco.mj_fwdPosition(model, data)
    contacts = data.ncon
    default = data.qpos.copy()
    random = np.random.default_rng(0)
    bounds = np.array([_bounds(model, j) for j in moving])
    addresses = model.jnt_qposadr[list(moving)]
    bodies = movable_bodies(model)
    points = []
    for _ in range(_TRIES * count):
        data.qpos[addresses] = random.uniform(bounds[:, 0], bounds[:, 1])
        mujoco.mj_fwdPosition(model, data)
        point = data.xpos[tip] + data.xmat[tip].reshape(3, 3) @ tip_pos
        lowest = min(point[2], data.xpos[bodies, 2].min())
        if data.ncon <= contacts and lowest + height >= 0.0:
            points.append(point)
        if len(points) == count:
            break
    data.qpos[:] = default
    mujoco.mj_fwdPosition(model, data)
    if not points:
        raise ValueError(
            f"None of {_TRIES * count} random poses of the robot is above the ground and without "
            "contacts: move its base up in the file, or exclude contacts of neighboring bodies."
        )
    chosen = np.arange(count) % len(points)
    return np.array(points)[chosen]


def _driven_joints(model: mujoco.MjModel) -> list[int]:
    """Return the hinges and slides with an actuator, or all of them if no joint has one."""
    joints = [j for j in range(model.njnt) if mujoco.mjtJoint(model.jnt_type[j]) in _ENDLESS]
    driven = {joint_of(model, a) for a in range(model.nu)}
    return [j for j in joints if j in driven] or joints


def _tip(model: mujoco.MjModel) -> int:
    """Return the last movable body of the longest chain, or that before its fingers."""
    depth = {0: 0}
    for body in movable_bodies(model):
        depth[body] = depth[int(model.body_weldid[model.body_parentid[body]])] + 1
    last = max(depth, key=lambda body: depth[body])
    chain = list(_chain_to(model, last))
    for body in reversed(chain):
        if len(moved_by(model, body)) > 1:
            return body
    return last


def _chain_to(model: mujoco.MjModel, body: int) -> Iterator[int]:
    """Yield the movable bodies from the base to a body."""
    path = []
    while body != 0:
        path.append(body)
        body = int(model.body_weldid[model.body_parentid[body]])
    yield from reversed(path)


def _joints_to(model: mujoco.MjModel, body: int) -> list[int]:
    """Return the joints that move a body."""
    found: list[int] = []
    for part in _chain_to(model, body):
        first = int(model.body_jntadr[part])
        found += range(first, first + int(model.body_jntnum[part]))
    return found


def _end_of(model: mujoco.MjModel, data: mujoco.MjData, tip: int) -> np.ndarray:
    """Return the end of a body and its fingers, in the direction of their middle [m], shape [3].

    The direction is that from the origin of the body.
    """
    parts = {tip}
    for body in range(1, model.nbody):
        if int(model.body_parentid[body]) in parts:
            parts.add(body)
    geoms = [g for g in range(model.ngeom) if int(model.geom_bodyid[g]) in parts]
    if not geoms:
        return np.zeros(3)
    rotation = data.xmat[tip].reshape(3, 3)
    middle = (data.geom_xpos[geoms].mean(axis=0) - data.xpos[tip]) @ rotation
    distance = float(np.linalg.norm(middle))
    if distance < 1e-6:
        return np.zeros(3)
    along = rotation @ middle / distance
    ends = [_extent(model, data, g, along) - along @ data.xpos[tip] for g in geoms]
    return middle / distance * max(ends)


def _extent(model: mujoco.MjModel, data: mujoco.MjData, geom: int, along: np.ndarray) -> float:
    """Return the largest coordinate of a geom's bounding box along a direction [m]."""
    center, half = model.geom_aabb[geom].reshape(2, 3)
    local = data.geom_xmat[geom].reshape(3, 3).T @ along
    return float(along @ data.geom_xpos[geom] + local @ center + np.abs(local) @ half)


def _torques_of_gravity(
    model: mujoco.MjModel, data: mujoco.MjData, joints: Sequence[int]
) -> dict[int, float]:
    """Return the largest torque of gravity on each joint in random poses [N m or N]."""
    default = data.qpos.copy()
    random = np.random.default_rng(0)
    largest = np.zeros(model.nv)
    for _ in range(100):
        for j in joints:
            data.qpos[model.jnt_qposadr[j]] = random.uniform(*_bounds(model, j))
        mujoco.mj_forward(model, data)
        largest = np.maximum(largest, np.abs(data.qfrc_bias - data.qfrc_gravcomp))
    data.qpos[:] = default
    mujoco.mj_forward(model, data)
    return {j: float(largest[model.jnt_dofadr[j]]) for j in joints}


def _bounds(model: mujoco.MjModel, joint: int) -> tuple[float, float]:
    """Return the range of a joint [rad or m], also of one without limits."""
    if model.jnt_limited[joint]:
        low, high = model.jnt_range[joint]
        return float(low), float(high)
    half = _ENDLESS[mujoco.mjtJoint(model.jnt_type[joint])]
    return -half, half


def _scale(model: mujoco.MjModel, joint: int) -> float:
    """Return the change of a joint's target for an action of 1 [rad or m]."""
    low, high = _bounds(model, joint)
    return float(f"{min(_LARGEST_SCALE, 0.5 * (high - low)):.3g}")
