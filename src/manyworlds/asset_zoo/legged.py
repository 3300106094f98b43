"""Legged robots of any maker: what a velocity task needs to know, derived from their models.

`docs/robots.md` states the rule. What it cannot derive, it asks for in its errors.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from manyworlds.actuator import BuiltinPositionActuatorCfg
from manyworlds.asset_zoo.imu import add_imu
from manyworlds.asset_zoo.legged_feet import (
    NEW_TASK,
    colliding_geoms,
    find_feet,
    geom_collides,
    geoms_of_foot,
    lowest_of_foot,
    sole_center,
    sole_geoms,
    standing_feet,
    wheel_warning,
    wheels_among,
)
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.spec.config import CollisionCfg
from manyworlds.spec.edits import drop_options
from manyworlds.validation.names import resolve_field

_OMEGA = 2.0 * math.pi * 10.0  # as in `motors`
_DAMPING_RATIO = 2.0
_MARGIN = 0.05  # of a joint's range: distance of the default position from its ends
_SAG = 0.1  # [rad]: largest deflection of a leg's joint under its share of the robot's weight
_SOFT_LIMITS = 0.9
_NAMED = 6  # joints that an error names
_GROUND = (mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_HFIELD)
_POSES = ("home", "stand", "standing", "default")
IMU = "imu_lin_vel"
ANGMOM = "root_angmom"


@dataclass(frozen=True)
class JointDrive:
    """Position control of one joint; of a slide, in N and m instead of N m and rad."""

    pos: float
    """Default position [rad]."""
    effort_limit: float
    """Largest torque [N m]."""
    stiffness: float
    """Torque per deviation [N m/rad]."""
    damping: float
    """Torque per velocity [N m s/rad]."""
    armature: float
    """Inertia of the rotor behind its gear [kg m^2]."""


@dataclass(frozen=True, kw_only=True)
class LeggedModel:
    """Facts about a legged robot that a velocity task needs; names are those of its model.

    Bodies and geoms without names have those that `name_elements` gives.
    """

    root: str
    """Body with the free joint."""
    feet: tuple[str, ...]
    """Last bodies of the legs: two or four."""
    height: float
    """Height of the root at which the feet touch the ground in the default pose [m]."""
    drives: dict[str, JointDrive]
    """Controlled joints, by name."""
    knees: tuple[str, ...] = ()
    """Second joints of each leg that bend forward and back."""
    pitch: tuple[str, ...] = ()
    """Joints of the legs that bend forward and back."""
    legs: tuple[str, ...] = ()
    """Joints of one leg each; the others are those of waist, arms and head."""


def name_elements(spec: mujoco.MjSpec, fixed_base: bool = False) -> mujoco.MjSpec:
    """Name the bodies, joints and geoms without names, and let the model stand alone and free.

    Geoms, lights and cameras of the world are removed. A root that is fixed to the world gets a
    free joint. Where the root's z-axis is not up, its frame is turned, so that z is up and x is
    where the feet point.

    Args:
        spec: the model, which is changed.
        fixed_base: leave the root as it is, and the geoms of the world that are no ground, such as
            the base link of a URDF file.

    Raises:
        ValueError: the world has no body, or several ones, or the root's frame cannot be turned.
    """
    for element in (*spec.worldbody.geoms, *spec.worldbody.lights, *spec.worldbody.cameras):
        is_base = isinstance(element, mujoco.MjsGeom) and element.type not in _GROUND
        if not (fixed_base and is_base):
            spec.delete(element)
    roots = list(spec.worldbody.bodies)
    if len(roots) != 1:
        names = ", ".join(body.name or "(no name)" for body in roots) or "none"
        raise ValueError(
            f"A robot has one body in the world, but the model has {len(roots)} ({names}): "
            "take the robot's own file, without its scene."
        )
    for number, body in enumerate(spec.bodies[1:], 1):
        joints = list(body.joints)
        if not body.name:
            body.name = f"body{number}"
            if joints and joints[0].name:
                body.name = f"{joints[0].name}_body"
        for kind, elements in (("joint", joints), ("geom", list(body.geoms))):
            for i, element in enumerate(elements):
                element.name = element.name or f"{body.name}_{kind}{i}"
    (root,) = roots
    if fixed_base:
        return spec
    if not list(root.joints):
        root.add_freejoint()
    if root.alt.type != mujoco.mjtOrientation.mjORIENTATION_QUAT or not np.array_equal(
        root.quat, (1.0, 0.0, 0.0, 0.0)
    ):
        _turn_root(spec, root)
    return spec


def _turn_root(spec: mujoco.MjSpec, root: mujoco.MjsBody) -> None:
    """Turn the root's frame, unless its z-axis is up, and leave all it contains where it is."""
    model = spec.copy().compile()
    data = mujoco.MjData(model)
    take_default_pose(model, data)
    mujoco.mj_kinematics(model, data)
    body = model.body(root.name).id
    axes = data.xmat[body].reshape(3, 3)
    if axes[2, 2] > math.sqrt(0.5):
        return
    feet = standing_feet(model, data, body)
    if len(feet) != 2 or any(root.name in (e.name1, e.name2) for e in spec.equalities):
        raise ValueError(
            f"The z-axis of the root '{root.name}' is not up in the default pose: turn the frame "
            "of this body in the file, so that z is up and x is forward, and its contents back."
        )
    turned = _facing(model, data, feet)
    between = np.zeros(4)
    mujoco.mju_mat2Quat(between, (turned.T @ axes).ravel())
    frame = root.add_frame(quat=between.tolist())
    contents = (root.frames, root.bodies, root.geoms, root.sites, root.cameras, root.lights)
    for element in [e for kind in contents for e in kind if e.frame is None and e is not frame]:
        element.set_frame(frame)
    if root.explicitinertial:
        root.ipos = turned.T @ axes @ model.body_ipos[body]
        mujoco.mju_mulQuat(root.iquat, between, model.body_iquat[body])
        root.inertia = model.body_inertia[body]
        root.fullinertia = np.full(6, np.nan)
        root.ialt.type = mujoco.mjtOrientation.mjORIENTATION_QUAT
    mujoco.mju_mat2Quat(root.quat, turned.ravel())
    root.alt.type = mujoco.mjtOrientation.mjORIENTATION_QUAT


def _facing(model: mujoco.MjModel, data: mujoco.MjData, feet: Sequence[int]) -> np.ndarray:
    """Return the axes of a biped in the world, as columns: forward, left and up, shape (3, 3)."""
    across = data.xpos[feet[0]] - data.xpos[feet[1]]
    forward = np.array([across[1], -across[0], 0.0]) / np.hypot(*across[:2])
    toes = sum(
        np.mean(data.geom_xpos[geoms_of_foot(model, foot)], axis=0) - data.xpos[foot]
        for foot in feet
    )
    if toes @ forward < 0.0:
        forward = -forward
    return np.column_stack([forward, (-forward[1], forward[0], 0.0), (0.0, 0.0, 1.0)])


def derive_legged_model(
    spec: mujoco.MjSpec,
    feet: Sequence[str] = (),
    effort_limit: float | Mapping[str, float] | None = None,
) -> LeggedModel:
    """Derive what a velocity task needs to know about a legged robot.

    Args:
        spec: the model; unchanged.
        feet: last bodies of the legs; empty to find them.
        effort_limit: largest torque of each controlled joint, or of those whose names a regular
            expression matches; the first match counts [N m]. Other joints have the model's limit.

    Raises:
        ValueError: a pattern matches no controlled joint, or something is missing, or not as in a
            robot with two or four legs; the message says what to add.
    """
    model = name_elements(spec.copy()).compile()
    root = free_root(model)
    data = mujoco.MjData(model)
    has_pose = take_default_pose(model, data)
    mujoco.mj_kinematics(model, data)
    found = find_feet(model, data, root, feet)
    paths = [list(_leg_joints(model, root, foot)) for foot in found]
    waist = set.intersection(*map(set, paths))
    legs = [[j for j in path if j not in waist] for path in paths]
    side = _side_axis(data, root, found)
    pitch = [[j for j in leg if _is_pitch(model, data, side, j)] for leg in legs]
    if not has_pose:
        for foot, joints in zip(found, pitch, strict=True):
            _bend_leg(model, data, foot, joints, len(found))
    holding = _holding_torque(model, data, root, found, legs) / _SAG
    stiff = {j: holding for leg in legs for j in leg}
    drives = {
        model.joint(j).name: drive
        for j, drive in joint_drives(model, data, effort_limit, controlled_hinges(model), stiff)
    }

    def named(joints: list[int]) -> tuple[str, ...]:
        names = (model.joint(joint).name for joint in joints)
        return tuple(name for name in names if name in drives)

    lows = (lowest_of_foot(model, data, foot) for foot in found)
    lowest = min(low for low in lows if low is not None)
    if data.xpos[root, 2] <= lowest:
        raise ValueError(
            f"The root '{model.body(root).name}' is {lowest - data.xpos[root, 2]:.2g} m below the "
            "feet in the default pose: add a keyframe 'home' in which the robot stands. A "
            f"robot with a fixed base takes {NEW_TASK} --fixed-base."
        )
    return LeggedModel(
        root=model.body(root).name,
        feet=tuple(model.body(foot).name for foot in found),
        height=round(float(data.xpos[root, 2] - lowest), 4),
        drives=drives,
        legs=named([j for leg in legs for j in leg]),
        pitch=named([j for joints in pitch for j in joints]),
        knees=named([joints[1] for joints in pitch if len(joints) > 1]),
    )


def legged_spec(spec: mujoco.MjSpec, robot: LeggedModel) -> mujoco.MjSpec:
    """Prepare a model for the task: names, a site at each sole, and the sensors that tasks read.

    The model's own actuators, keyframes, sensors and physics options are removed: the task has its
    own.
    """
    name_elements(spec)
    drop_options(spec)
    model = spec.copy().compile()
    data = default_pose(model, robot)
    for element in (*spec.actuators, *spec.keys, *spec.sensors):
        spec.delete(element)
    spec.nkey = 0
    for name in robot.feet:
        foot = model.body(name).id
        center = sole_center(model, data, foot, len(robot.feet))
        sole = np.array([*center[:2], lowest_of_foot(model, data, foot)])
        local = data.xmat[foot].reshape(3, 3).T @ (sole - data.xpos[foot])
        spec.body(name).add_site(name=sole_site(name), pos=local, group=5)
    spec.body(robot.root).add_site(name="manyworlds_imu", group=5)
    add_imu(spec, site="manyworlds_imu", root=robot.root)
    return spec


def sole_site(foot: str) -> str:
    """Return the name of the site at the sole of a foot."""
    return f"{foot}_sole"


def foot_geoms(spec: mujoco.MjSpec, robot: LeggedModel) -> tuple[str, ...]:
    """Return the names of the geoms on which the robot stands.

    Two feet have all geoms of their bodies that collide, and four feet the lowest geom of each.
    """
    model = name_elements(spec.copy()).compile()
    data = default_pose(model, robot)
    feet = [model.body(name).id for name in robot.feet]
    return tuple(
        model.geom(g).name for foot in feet for g in sole_geoms(model, data, foot, len(feet))
    )


def default_pose(model: mujoco.MjModel, robot: LeggedModel) -> mujoco.MjData:
    """Return the kinematics of a robot in its default pose, at the height of the file."""
    data = mujoco.MjData(model)
    for name, drive in robot.drives.items():
        data.joint(name).qpos[0] = drive.pos
    mujoco.mj_kinematics(model, data)
    return data


def trunk_geoms(spec: mujoco.MjSpec, robot: LeggedModel) -> tuple[str, ...]:
    """Return the names of the geoms of the root that collide."""
    model = name_elements(spec.copy()).compile()
    return tuple(model.geom(g).name for g in colliding_geoms(model, model.body(robot.root).id))


def legged_entity(spec: mujoco.MjSpec, robot: LeggedModel) -> EntityCfg:
    """Configure a robot, in its default pose, with position control of its joints."""
    model = name_elements(spec.copy()).compile()
    collides = [model.geom(g).name for g in range(model.ngeom) if geom_collides(model, g)]
    feet = f"^({'|'.join(map(re.escape, foot_geoms(spec, robot)))})$"
    actuators = tuple(
        BuiltinPositionActuatorCfg(
            target_names_expr=(f"^{re.escape(name)}$",),
            stiffness=drive.stiffness,
            damping=drive.damping,
            effort_limit=drive.effort_limit,
            armature=drive.armature,
        )
        for name, drive in robot.drives.items()
    )
    wheels = wheels_among(model, robot.feet)

    def robot_spec() -> mujoco.MjSpec:
        if wheels:
            warnings.warn(wheel_warning(wheels), stacklevel=2)
        return legged_spec(spec.copy(), robot)

    return EntityCfg(
        spec_fn=robot_spec,
        init_state=EntityCfg.InitialStateCfg(
            pos=(0.0, 0.0, robot.height),
            joint_pos={f"^{re.escape(n)}$": drive.pos for n, drive in robot.drives.items()},
        ),
        articulation=EntityArticulationInfoCfg(
            actuators=actuators, soft_joint_pos_limit_factor=_SOFT_LIMITS
        ),
        collisions=(
            CollisionCfg(
                geom_names_expr=tuple(f"^{re.escape(name)}$" for name in collides),
                condim={feet: 3, ".*": 1},
                priority={feet: 1},
                friction={feet: (0.6,)},
            ),
        ),
    )


def free_root(model: mujoco.MjModel) -> int:
    """Return the body with the free joint.

    Raises:
        ValueError: there is none, or several ones.
    """
    free = np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE)
    if len(free) != 1:
        raise ValueError(
            f"A legged robot has one free joint, at its root, but the model has {len(free)}: add "
            "<freejoint/> to the body of its trunk, and leave other movable things out. A robot "
            f"with a fixed base takes {NEW_TASK} --fixed-base."
        )
    return int(model.jnt_bodyid[free[0]])


def take_default_pose(model: mujoco.MjModel, data: mujoco.MjData) -> bool:
    """Set the model's standing keyframe, or zero, and move joints into their ranges.

    Returns:
        Whether the model has such a keyframe.
    """
    names = [model.key(i).name for i in range(model.nkey)]
    found = next((name for name in _POSES if name in names), None)
    if found is not None:
        mujoco.mj_resetDataKeyframe(model, data, names.index(found))
    for j in range(model.njnt):
        if model.jnt_limited[j] and model.jnt_type[j] == mujoco.mjtJoint.mjJNT_HINGE:
            low, high = model.jnt_range[j]
            inside = _MARGIN * (high - low)
            address = model.jnt_qposadr[j]
            data.qpos[address] = np.clip(data.qpos[address], low + inside, high - inside)
    return found is not None


def _bend_leg(
    model: mujoco.MjModel, data: mujoco.MjData, foot: int, pitch: list[int], count: int
) -> None:
    """Let a leg that cannot be straight stand: bend its knee halfway, with the foot below the hip.

    Such a leg has a knee whose range ends before zero by more than the margin.
    """
    if len(pitch) < 2 or not model.jnt_limited[pitch[1]]:
        return
    hip, knee = pitch[:2]
    sole = sole_geoms(model, data, foot, count)  # before the knee may be lower
    low, high = model.jnt_range[knee]
    if low - _MARGIN * (high - low) <= 0.0 <= high + _MARGIN * (high - low):
        return
    data.qpos[model.jnt_qposadr[knee]] = 0.5 * (low + high)
    mujoco.mj_kinematics(model, data)
    axis = data.xaxis[hip]
    leg = data.geom_xpos[sole].mean(axis=0) - data.xanchor[hip]
    down = np.array([0.0, 0.0, -1.0])
    leg, down = (vector - axis * (axis @ vector) for vector in (leg, down))
    address = model.jnt_qposadr[hip]
    data.qpos[address] += math.atan2(axis @ np.cross(leg, down), leg @ down)
    if model.jnt_limited[hip]:
        data.qpos[address] = np.clip(data.qpos[address], *model.jnt_range[hip])
    mujoco.mj_kinematics(model, data)


def _holding_torque(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    root: int,
    feet: Sequence[int],
    legs: Sequence[Sequence[int]],
) -> float:
    """Return the largest torque of a leg's joint if each foot carries the same weight [N m]."""
    mujoco.mj_forward(model, data)
    force = -model.opt.gravity * model.body_subtreemass[root] / len(feet)
    largest = 0.0
    for foot, leg in zip(feet, legs, strict=True):
        jacobian = np.zeros((3, model.nv))
        point = sole_center(model, data, foot, len(feet))
        mujoco.mj_jac(model, data, jacobian, None, point, foot)
        torques = np.abs(data.qfrc_bias - jacobian.T @ force)
        largest = max([largest, *torques[model.jnt_dofadr[list(leg)]]])
    return float(largest)


def _leg_joints(model: mujoco.MjModel, root: int, foot: int) -> Iterator[int]:
    """Yield the hinges from the root to a foot."""
    path = []
    body = foot
    while body not in (root, 0):
        path.append(body)
        body = model.body_parentid[body]
    for body in reversed(path):
        first = model.body_jntadr[body]
        for j in range(first, first + model.body_jntnum[body]):
            if model.jnt_type[j] == mujoco.mjtJoint.mjJNT_HINGE:
                yield j


def _side_axis(data: mujoco.MjData, root: int, feet: Sequence[int]) -> np.ndarray:
    """Return the root's axis from one side to the other: y, or that on which two feet lie."""
    axes = data.xmat[root].reshape(3, 3).T
    if len(feet) != 2:
        return axes[1]
    across = data.xpos[feet[0]] - data.xpos[feet[1]]
    across[2] = 0.0
    return axes[np.argmax(np.abs(axes @ across))]


def _is_pitch(model: mujoco.MjModel, data: mujoco.MjData, side: np.ndarray, joint: int) -> bool:
    """Return True if a joint turns about the axis between the sides rather than another one."""
    body = model.jnt_bodyid[joint]
    axis = data.xmat[body].reshape(3, 3) @ model.jnt_axis[joint]
    return abs(float(axis @ side)) > math.sqrt(0.5)


def controlled_hinges(model: mujoco.MjModel) -> list[int]:
    """Return the hinges with an actuator, or all hinges if no joint has one."""
    hinges = [j for j in range(model.njnt) if model.jnt_type[j] == mujoco.mjtJoint.mjJNT_HINGE]
    by_joint = _actuators(model)
    if not by_joint:
        return hinges
    return [j for j in hinges if j in by_joint]


def _actuators(model: mujoco.MjModel) -> dict[int, int]:
    """Return the actuator of each joint that has one."""
    return {
        int(model.actuator_trnid[a, 0]): a
        for a in range(model.nu)
        if model.actuator_trntype[a] == mujoco.mjtTrn.mjTRN_JOINT
    }


def joint_drives(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    effort_limit: float | Mapping[str, float] | None,
    driven: Sequence[int],
    stiff: Mapping[int, float],
) -> Iterator[tuple[int, JointDrive]]:
    """Yield the position control of joints.

    Args:
        model: the robot.
        data: its default pose.
        effort_limit: see `derive_legged_model`.
        driven: the joints, hinges or slides.
        stiff: least stiffness of joints without a servo [N m/rad or N/m].

    Raises:
        ValueError: the largest torque of a joint is not known.
    """
    by_joint = _actuators(model)
    given = resolve_field(effort_limit, [model.joint(j).name for j in driven])
    efforts: dict[int, float] = {}
    for j, limit in zip(driven, given, strict=True):
        effort = limit or _effort(model, j, by_joint.get(j))
        if effort:
            efforts[j] = effort
    lacking = [model.joint(j).name for j in driven if j not in efforts]
    if lacking:
        more = ""
        if len(lacking) > _NAMED:
            more = f" and {len(lacking) - _NAMED} others"
        raise ValueError(
            f"The model has no largest torque of {', '.join(lacking[:_NAMED])}{more}: add "
            "forcerange to their actuators or actuatorfrcrange to the joints, or give torques with "
            f"{NEW_TASK} --effort-limit VALUE."
        )
    for j, effort in efforts.items():
        least = min(stiff.get(j, 0.0), effort / _SAG)  # more needs torques that it does not have
        stiffness, damping = _gains(model, by_joint.get(j)) or (max(effort, least), 0.0)
        damping = damping or stiffness * 2.0 * _DAMPING_RATIO / _OMEGA
        armature = float(model.dof_armature[model.jnt_dofadr[j]]) or stiffness / _OMEGA**2
        values = float(data.qpos[model.jnt_qposadr[j]]), effort, stiffness, damping, armature
        yield j, JointDrive(*(float(f"{value:.4g}") for value in values))


def _effort(model: mujoco.MjModel, joint: int, actuator: int | None) -> float | None:
    """Return the largest torque of a joint [N m]; None if the model does not say."""
    if actuator is not None:
        gear = abs(model.actuator_gear[actuator, 0])
        if model.actuator_forcelimited[actuator]:
            return float(gear * np.abs(model.actuator_forcerange[actuator]).max())
        is_motor = model.actuator_biastype[actuator] == mujoco.mjtBias.mjBIAS_NONE
        if is_motor and model.actuator_ctrllimited[actuator]:
            largest = np.abs(model.actuator_ctrlrange[actuator]).max()
            return float(gear * abs(model.actuator_gainprm[actuator, 0]) * largest)
    if model.jnt_actfrclimited[joint]:
        return float(np.abs(model.jnt_actfrcrange[joint]).max())
    return None


def _gains(model: mujoco.MjModel, actuator: int | None) -> tuple[float, float] | None:
    """Return stiffness and damping of a position servo; None for other actuators."""
    if actuator is None or model.actuator_biastype[actuator] != mujoco.mjtBias.mjBIAS_AFFINE:
        return None
    gear = float(model.actuator_gear[actuator, 0])
    _, stiffness, damping = -model.actuator_biasprm[actuator, :3] * gear**2
    if stiffness <= 0.0:
        return None
    return float(stiffness), float(damping)
