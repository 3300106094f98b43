"""Robots on wheels of any maker: what a velocity task needs to know, derived from their models.

`docs/robots.md` states the rule. What it cannot derive, it asks for in its errors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from manyworlds.asset_zoo.legged import (
    JointDrive,
    controlled_hinges,
    free_root,
    joint_drives,
    name_elements,
    take_default_pose,
)
from manyworlds.asset_zoo.legged_feet import (
    NEW_TASK,
    colliding_geoms,
    geom_collides,
    lowest_point,
    movable_bodies,
    own_lowest,
    wheels_among,
)
from manyworlds.spec.elements import joint_of

_TOUCH_SHARE = 0.25  # of a wheel's radius: distance from the lowest point that counts as touching
_OFF_AXIS = 0.1  # of a wheel's radius: distance of its middle from its axis
_PARALLEL = 0.95  # least cosine of the angle between the axes of a wheel and its hinge
_LEVEL = 0.5  # largest vertical part of the axis of a wheel
_UNEVEN = 0.1  # of a mesh's radius: differences over which it is not round
_SECTORS = 12  # directions in which the radius of a mesh is compared
_SPEEDS = (0.3, 1.5)  # bounds of the largest forward velocity [m/s]
_SPEED_PER_RADIUS = 10.0  # [1/s]
_OF_TOP_SPEED = 0.8  # share of the speed of the model's velocity actuators
_YAW_RATE = 1.0  # bound of the largest yaw rate [rad/s]
_FULL_TORQUE = 0.5  # share of the top speed that, as an error, takes the largest torque


@dataclass(frozen=True)
class WheelDrive:
    """Velocity control of one wheel."""

    effort_limit: float
    """Largest torque [N m]."""
    damping: float
    """Torque per velocity error [N m s/rad]."""


@dataclass(frozen=True, kw_only=True)
class WheeledModel:
    """Facts about a robot on wheels; names are those of its model, or of `name_elements`."""

    root: str
    """Body with the free joint; it drives along its x-axis."""
    wheels: dict[str, WheelDrive]
    """Driven wheels, by the names of their hinges."""
    radius: float
    """Mean radius of the driven wheels [m]."""
    speed: float
    """Largest commanded forward velocity [m/s]."""
    yaw_rate: float
    """Largest commanded yaw rate [rad/s]; 0 if all wheels are in one line."""
    height: float
    """Height of the root at which the wheels touch the ground in the default pose [m]."""
    pose: dict[str, float]
    """Positions of joints in the default pose that are not zero [rad or m]."""
    drives: dict[str, JointDrive]
    """Position control of the other joints with an actuator, such as those that steer."""
    timestep: float
    """Timestep of the model [s]."""


def find_wheels(spec: mujoco.MjSpec) -> list[str]:
    """Return the bodies that are wheels: round, turning without limits, touching the ground.

    A ball on which alone the robot stands is no wheel.

    Args:
        spec: the model; unchanged.

    Raises:
        ValueError: it cannot be told from feet; the message asks for the option that decides.
    """
    model = name_elements(spec.copy()).compile()
    data = mujoco.MjData(model)
    take_default_pose(model, data)
    mujoco.mj_kinematics(model, data)
    lows = {body: own_lowest(model, data, body) for body in movable_bodies(model)}
    ground = min((low for low in lows.values() if low is not None), default=0.0)
    wheels: list[str] = []
    doubtful: list[str] = []
    for body, low in lows.items():
        name = model.body(body).name
        radius = wheel_radius(model, data, body)
        if low is None or not wheels_among(model, (name,)):
            continue
        size = radius or max(float(model.geom_rbound[g]) for g in colliding_geoms(model, body))
        if low > ground + _TOUCH_SHARE * size:
            continue
        if radius is None:
            doubtful.append(name)
        else:
            wheels.append(name)
    if doubtful:
        raise ValueError(
            f"It is not clear whether {doubtful} are wheels, because they turn without limits on "
            "the ground but are not round: name the wheels with "
            f"{NEW_TASK} --wheels BODY BODY, or the feet with --feet BODY BODY. An arm takes "
            "--fixed-base."
        )
    if len(wheels) == 1 and _is_ball(model, wheels[0]):
        return []
    others = [model.body(b).name for b in _other_ends(model, lows, ground, wheels)]
    if wheels and others:
        raise ValueError(
            f"The robot stands on the wheels {wheels} and also on {others}: name all wheels with "
            f"{NEW_TASK} --wheels BODY BODY, or the feet with --feet BODY BODY."
        )
    return wheels


def wheel_radius(model: mujoco.MjModel, data: mujoco.MjData, body: int) -> float | None:
    """Return the radius of a body that is round about its hinge [m]; None if it is not."""
    geoms = colliding_geoms(model, body)
    if not geoms or model.body_jntnum[body] != 1:
        return None
    joint = int(model.body_jntadr[body])
    geom = max(geoms, key=lambda g: float(model.geom_rbound[g]))
    axis = data.xaxis[joint]
    between = data.geom_xpos[geom] - data.xanchor[joint]
    off = float(np.linalg.norm(between - axis * (axis @ between)))
    radius = _round_about(model, data, geom, joint)
    if radius is None or off > _OFF_AXIS * radius or abs(axis[2]) > _LEVEL:
        return None
    return radius


def derive_wheeled_model(
    spec: mujoco.MjSpec,
    wheels: Sequence[str],
    effort_limit: float | Mapping[str, float] | None = None,
) -> WheeledModel:
    """Derive what a velocity task needs to know about a robot on wheels.

    Args:
        spec: the model; unchanged.
        wheels: bodies of the wheels; see `find_wheels`.
        effort_limit: see `derive_legged_model`.

    Raises:
        ValueError: a body is no wheel, or something is missing; the message says what to add.
    """
    model = name_elements(spec.copy()).compile()
    root = free_root(model)
    data = mujoco.MjData(model)
    take_default_pose(model, data)
    mujoco.mj_kinematics(model, data)
    hinges = [_hinge(model, name) for name in wheels]
    actuators = {joint_of(model, a): a for a in range(model.nu) if joint_of(model, a) >= 0}
    driven = [j for j in hinges if j in actuators] or hinges
    _check_direction(model, data, root, driven)
    radius = float(np.mean([_radius(model, data, j) for j in driven]))
    speed = _speed(model, [actuators[j] for j in driven if j in actuators], radius)
    others = [
        j
        for j in controlled_hinges(model)
        if j not in hinges and (model.jnt_limited[j] or j in actuators)
    ]
    found = dict(joint_drives(model, data, effort_limit, sorted([*driven, *others]), {}))
    drives: dict[str, WheelDrive] = {}
    for j in driven:
        effort = found[j].effort_limit
        gain = _velocity_gain(model, actuators.get(j))
        gain = gain or effort / (_FULL_TORQUE * speed / radius)
        drives[model.joint(j).name] = WheelDrive(effort, float(f"{gain:.4g}"))
    across = [float((data.xmat[root].reshape(3, 3).T @ data.xanchor[j])[1]) for j in hinges]
    track = max(across) - min(across)
    yaw_rate = 0.0
    if track > radius:
        yaw_rate = min(_YAW_RATE, speed / track)
    moving = np.flatnonzero(model.body_weldid[model.geom_bodyid] != 0)
    lows = [lowest_point(model, data, int(g)) for g in moving if geom_collides(model, int(g))]
    positions = {
        model.joint(j).name: round(float(data.qpos[model.jnt_qposadr[j]]), 4)
        for j in range(model.njnt)
        if model.jnt_type[j] in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)
    }
    return WheeledModel(
        root=model.body(root).name,
        wheels=drives,
        radius=round(radius, 4),
        speed=round(speed, 3),
        yaw_rate=round(yaw_rate, 3),
        height=round(float(data.xpos[root, 2] - min(lows)), 4),
        pose={name: value for name, value in positions.items() if value},
        drives={model.joint(j).name: found[j] for j in others},
        timestep=float(model.opt.timestep),
    )


def _other_ends(
    model: mujoco.MjModel, lows: Mapping[int, float | None], ground: float, wheels: Sequence[str]
) -> list[int]:
    """Return the bodies with a limited hinge that touch the ground and are no wheels."""
    radius = max((float(model.geom_rbound[_largest(model, name)]) for name in wheels), default=0.0)
    found = []
    for body, low in lows.items():
        first = int(model.body_jntadr[body])
        is_end = first >= 0 and model.jnt_type[first] == mujoco.mjtJoint.mjJNT_HINGE
        if low is None or not is_end or model.body(body).name in wheels:
            continue
        if model.jnt_limited[first] and low < ground + _TOUCH_SHARE * radius:
            found.append(body)
    return found


def _is_ball(model: mujoco.MjModel, name: str) -> bool:
    """Return whether the largest geom of a body that collides is a sphere."""
    return model.geom_type[_largest(model, name)] == mujoco.mjtGeom.mjGEOM_SPHERE


def _largest(model: mujoco.MjModel, name: str) -> int:
    """Return the largest geom of a body that collides."""
    geoms = colliding_geoms(model, model.body(name).id)
    return max(geoms, key=lambda g: float(model.geom_rbound[g]))


def _round_about(model: mujoco.MjModel, data: mujoco.MjData, geom: int, joint: int) -> float | None:
    """Return the radius of a geom that is round about the axis of a joint [m]; else None."""
    axis = data.xaxis[joint]
    kind = mujoco.mjtGeom(model.geom_type[geom])
    size = model.geom_size[geom]
    along = abs(float(data.geom_xmat[geom].reshape(3, 3)[:, 2] @ axis))
    if kind == mujoco.mjtGeom.mjGEOM_SPHERE:
        return float(size[0])
    if kind in (mujoco.mjtGeom.mjGEOM_CYLINDER, mujoco.mjtGeom.mjGEOM_CAPSULE):
        return float(size[0]) if along > _PARALLEL else None
    if kind == mujoco.mjtGeom.mjGEOM_ELLIPSOID:
        is_round = along > _PARALLEL and math.isclose(size[0], size[1], rel_tol=_UNEVEN)
        return float(size[0]) if is_round else None
    if kind != mujoco.mjtGeom.mjGEOM_MESH:
        return None
    mesh = model.geom_dataid[geom]
    start = model.mesh_vertadr[mesh]
    vertices = model.mesh_vert[start : start + model.mesh_vertnum[mesh]]
    points = vertices @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom]
    points = points - data.xanchor[joint]
    across = np.cross(axis, (0.0, 0.0, 1.0))
    across /= np.linalg.norm(across)
    plane = points @ np.column_stack([across, np.cross(axis, across)])
    angles = np.arctan2(plane[:, 1], plane[:, 0])
    sectors = ((angles + np.pi) / (2.0 * np.pi) * _SECTORS).astype(int) % _SECTORS
    radii = np.zeros(_SECTORS)
    np.maximum.at(radii, sectors, np.linalg.norm(plane, axis=1))
    largest = float(radii.max())
    return largest if radii.min() > (1.0 - _UNEVEN) * largest else None


def _hinge(model: mujoco.MjModel, name: str) -> int:
    """Return the hinge of a wheel.

    Raises:
        ValueError: the model has no such body, or it has no hinge.
    """
    known = [model.body(b).name for b in range(1, model.nbody)]
    if name not in known:
        raise ValueError(f"The model has no body '{name}': choose wheels from {known}.")
    body = int(model.body_weldid[model.body(name).id])
    joint = int(model.body_jntadr[body])
    if body == 0 or joint < 0 or model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_HINGE:
        raise ValueError(f"The body '{name}' has no hinge: choose bodies that turn as wheels.")
    return joint


def _radius(model: mujoco.MjModel, data: mujoco.MjData, joint: int) -> float:
    """Return the radius of a wheel; of one that is not round, the height of its hinge [m]."""
    body = int(model.jnt_bodyid[joint])
    low = own_lowest(model, data, body)
    if low is None:
        raise ValueError(
            f"The wheel '{model.body(body).name}' has no geom that collides: give it one."
        )
    return wheel_radius(model, data, body) or float(data.xanchor[joint, 2] - low)


def _check_direction(
    model: mujoco.MjModel, data: mujoco.MjData, root: int, driven: Sequence[int]
) -> None:
    """Check that the robot drives along the x-axis of its root.

    Raises:
        ValueError: all wheels turn about that axis.
    """
    ahead = data.xmat[root].reshape(3, 3)[:, 0]
    if all(abs(float(data.xaxis[j] @ ahead)) > _PARALLEL for j in driven):
        raise ValueError(
            f"All wheels turn about the x-axis of the root '{model.body(root).name}', so that it "
            "drives sideways: turn the frame of this body in the file, so that x is forward."
        )


def _speed(model: mujoco.MjModel, actuators: Sequence[int], radius: float) -> float:
    """Return the largest forward velocity to command [m/s]."""
    low, high = _SPEEDS
    speed = min(max(_SPEED_PER_RADIUS * radius, low), high)
    for actuator in actuators:
        if _velocity_gain(model, actuator) and model.actuator_ctrllimited[actuator]:
            top = float(np.abs(model.actuator_ctrlrange[actuator]).max())
            gear = abs(float(model.actuator_gear[actuator, 0]))
            speed = min(speed, _OF_TOP_SPEED * top / gear * radius)
    return speed


def _velocity_gain(model: mujoco.MjModel, actuator: int | None) -> float:
    """Return the torque per velocity of a velocity actuator [N m s/rad]; 0 for others."""
    if actuator is None or model.actuator_biastype[actuator] != mujoco.mjtBias.mjBIAS_AFFINE:
        return 0.0
    _, position, velocity = model.actuator_biasprm[actuator, :3]
    if position or model.actuator_gainprm[actuator, 0] != -velocity:
        return 0.0
    return float(-velocity * model.actuator_gear[actuator, 0] ** 2)
