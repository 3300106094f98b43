"""Legged robots of any maker: what a velocity task needs to know, derived from their models.

`docs/robots.md` states the rule. What it cannot derive, it asks for in its errors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from manyworlds.actuator import BuiltinPositionActuatorCfg
from manyworlds.asset_zoo.links import add_imu
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.spec.config import CollisionCfg
from manyworlds.validation.names import resolve_field

_OMEGA, _DAMPING_RATIO = 2.0 * math.pi * 10.0, 2.0  # as in `motors`
_FOOT_SHARE = 0.15  # of the root's height: distance of a foot from the lowest point
_TOE_SHARE = 0.03  # of the root's height: distance of a foot from its toes' lowest point
_LEAST_STANCE = 0.25  # of the longest leg: height of the root of a robot that stands
_MARGIN = 0.05  # of a joint's range: distance of the default position from its ends
_SOFT_LIMITS = 0.9
_NAMED = 6  # joints that an error names
_NEW_TASK = "manyworlds new-task NAME --robot FILE"
_POSES = ("home", "stand", "standing", "default", "")
IMU, ANGMOM = "imu_lin_vel", "root_angmom"


@dataclass(frozen=True)
class JointDrive:
    """Position control of one joint."""

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


def name_elements(spec: mujoco.MjSpec) -> mujoco.MjSpec:
    """Name the bodies, joints and geoms without names, and let the model stand alone and free.

    Geoms, lights and cameras of the world are removed. A root that is fixed to the world gets a
    free joint. Where the root's z-axis is not up, its frame is turned, so that z is up and x is
    where the feet point.

    Raises:
        ValueError: the world has no body, or several ones, or the root's frame cannot be turned.
    """
    for element in (*spec.worldbody.geoms, *spec.worldbody.lights, *spec.worldbody.cameras):
        spec.delete(element)
    roots = list(spec.worldbody.bodies)
    if len(roots) != 1:
        names = ", ".join(body.name or "(no name)" for body in roots)
        raise ValueError(
            f"A legged robot has one body in the world, but the model has {len(roots)}"
            f"{f' ({names})' if names else ''}: take the robot's own file, without its scene."
        )
    for number, body in enumerate(spec.bodies[1:], 1):
        joints = list(body.joints)
        if not body.name:
            body.name = f"{joints[0].name}_body" if joints and joints[0].name else f"body{number}"
        for kind, elements in (("joint", joints), ("geom", list(body.geoms))):
            for i, element in enumerate(elements):
                element.name = element.name or f"{body.name}_{kind}{i}"
    (root,) = roots
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
    _take_default_pose(model, data)
    mujoco.mj_kinematics(model, data)
    body = model.body(root.name).id
    axes = data.xmat[body].reshape(3, 3)
    if axes[2, 2] > math.sqrt(0.5):
        return
    feet = _standing_on(model, data, body)
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
        root.inertia, root.fullinertia = model.body_inertia[body], np.full(6, np.nan)
        root.ialt.type = mujoco.mjtOrientation.mjORIENTATION_QUAT
    mujoco.mju_mat2Quat(root.quat, turned.ravel())
    root.alt.type = mujoco.mjtOrientation.mjORIENTATION_QUAT


def _facing(model: mujoco.MjModel, data: mujoco.MjData, feet: Sequence[int]) -> np.ndarray:
    """Return the axes of a biped in the world, as columns: forward, left and up, shape (3, 3)."""
    across = data.xpos[feet[0]] - data.xpos[feet[1]]
    forward = np.array([across[1], -across[0], 0.0]) / np.hypot(*across[:2])
    toes = sum(
        np.mean(data.geom_xpos[_foot_geoms(model, foot)], axis=0) - data.xpos[foot] for foot in feet
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
            expression matches, of which the first counts [N m]; others have that of the model.

    Raises:
        ValueError: a pattern matches no controlled joint, or something is missing, or not as in a
            robot with two or four legs; the message says what to add.
    """
    model = name_elements(spec.copy()).compile()
    root = _root(model)
    data = mujoco.MjData(model)
    _take_default_pose(model, data)
    mujoco.mj_kinematics(model, data)
    found = _feet(model, data, root, feet)
    paths = [list(_leg_joints(model, root, foot)) for foot in found]
    waist = set.intersection(*map(set, paths))
    legs = [[j for j in path if j not in waist] for path in paths]
    drives = {model.joint(j).name: drive for j, drive in _drives(model, data, effort_limit)}
    side = _side_axis(data, root, found)
    pitch = [[j for j in leg if _is_pitch(model, data, side, j)] for leg in legs]

    def named(joints: list[int]) -> tuple[str, ...]:
        return tuple(n for j in joints if (n := model.joint(j).name) in drives)

    lowest = min(low for foot in found if (low := _lowest(model, data, foot)) is not None)
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

    The model's own actuators, keyframes and sensors are removed.
    """
    name_elements(spec)
    model = spec.copy().compile()
    data = default_pose(model, robot)
    for element in (*spec.actuators, *spec.keys, *spec.sensors):
        spec.delete(element)
    spec.nkey = 0
    for name in robot.feet:
        foot = model.body(name).id
        spots = [data.geom_xpos[g] for g in _sole(model, data, foot, len(robot.feet))]
        low = _lowest(model, data, foot)
        sole = np.array([*np.mean(spots, axis=0)[:2], low])
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
    return tuple(model.geom(g).name for foot in feet for g in _sole(model, data, foot, len(feet)))


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
    return tuple(model.geom(g).name for g in _colliding(model, model.body(robot.root).id))


def legged_entity(spec: mujoco.MjSpec, robot: LeggedModel) -> EntityCfg:
    """Configure a robot, in its default pose, with position control of its joints."""
    model = name_elements(spec.copy()).compile()
    collides = [model.geom(g).name for g in range(model.ngeom) if _collides(model, g)]
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
    return EntityCfg(
        spec_fn=lambda: legged_spec(spec.copy(), robot),
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


def _root(model: mujoco.MjModel) -> int:
    free = np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE)
    if len(free) != 1:
        raise ValueError(
            f"A legged robot has one free joint, at its root, but the model has {len(free)}: add "
            "<freejoint/> to the body of its trunk, and leave other movable things out."
        )
    return int(model.jnt_bodyid[free[0]])


def _take_default_pose(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Set the model's standing keyframe, or zero, and move joints into their ranges."""
    names = [model.key(i).name for i in range(model.nkey)]
    for name in _POSES[:-1]:
        if name in names:
            mujoco.mj_resetDataKeyframe(model, data, names.index(name))
            break
    for j in range(model.njnt):
        if model.jnt_limited[j] and model.jnt_type[j] == mujoco.mjtJoint.mjJNT_HINGE:
            low, high = model.jnt_range[j]
            inside = _MARGIN * (high - low)
            address = model.jnt_qposadr[j]
            data.qpos[address] = np.clip(data.qpos[address], low + inside, high - inside)


def _feet(model: mujoco.MjModel, data: mujoco.MjData, root: int, names: Sequence[str]) -> list[int]:
    """Return the feet, by their bodies, in the order of the model."""
    if names:
        known = [model.body(b).name for b in range(1, model.nbody)]
        if unknown := [name for name in names if name not in known]:
            raise ValueError(f"The model has no body {unknown}: choose feet from {known}.")
        found = sorted(int(model.body_weldid[model.body(name).id]) for name in names)
    else:
        found = _standing_on(model, data, root)
    if len(found) not in (2, 4):
        ends = ", ".join(model.body(b).name for b in found) or "none"
        raise ValueError(
            "A legged robot has two or four feet, but the parts that reach the ground in its "
            f"default pose are {len(found)} ({ends}): name the last bodies of the legs with "
            f"{_NEW_TASK} --feet BODY BODY, or add a keyframe 'home' in which it stands. For a "
            "robot without legs, write a task of an arm with manyworlds new-task NAME, and "
            "exchange the arm's model."
        )
    return found


def _standing_on(model: mujoco.MjModel, data: mujoco.MjData, root: int) -> list[int]:
    """Return the bodies on which a robot stands: the lowest ends of its legs; none if it lies.

    Toes belong to the foot before them if that reaches the ground, too.
    """
    ends = [b for b in _movable(model) if b != root and not _moved_by(model, b)]
    lows = {b: low for b in ends if (low := _own_lowest(model, data, b)) is not None}
    ground = min(lows.values(), default=0.0)
    height = max(data.xpos[root, 2] - ground, 0.0)
    lowest = [b for b, low in lows.items() if low <= ground + _FOOT_SHARE * height]
    longest = max((_leg_length(model, data, root, b) for b in lowest), default=0.0)
    if height < _LEAST_STANCE * longest:
        return []
    found = set()
    for toe in lowest:
        foot = _parent(model, toe)
        low = None if foot == root else _own_lowest(model, data, foot)
        has_toes = low is not None and low <= lows[toe] + _TOE_SHARE * height
        found.add(foot if has_toes else toe)
    return sorted(found)


def _leg_length(model: mujoco.MjModel, data: mujoco.MjData, root: int, foot: int) -> float:
    """Return the length of the bodies' chain from the root to a foot [m]."""
    length = 0.0
    while foot not in (root, 0):
        parent = model.body_parentid[foot]
        length += float(np.linalg.norm(data.xpos[foot] - data.xpos[parent]))
        foot = parent
    return length


def _parent(model: mujoco.MjModel, body: int) -> int:
    """Return the movable body to which a movable body is hinged; 0 for the root."""
    return int(model.body_weldid[model.body_parentid[body]])


def _moved_by(model: mujoco.MjModel, body: int) -> list[int]:
    """Return the movable bodies that hang at a movable body."""
    return [b for b in _movable(model) if _parent(model, b) == body]


def _movable(model: mujoco.MjModel) -> list[int]:
    """Return the bodies with joints: each stands for itself and what is fixed to it."""
    return [b for b in range(1, model.nbody) if model.body_weldid[b] == b]


def _collides(model: mujoco.MjModel, geom: int) -> bool:
    return bool(model.geom_contype[geom] or model.geom_conaffinity[geom])


def _colliding(model: mujoco.MjModel, body: int) -> list[int]:
    """Return the geoms that collide of a body and of what is fixed to it."""
    fixed = model.body_weldid[model.geom_bodyid] == body
    return [int(g) for g in np.flatnonzero(fixed) if _collides(model, int(g))]


def _foot_parts(model: mujoco.MjModel, foot: int) -> list[int]:
    """Return the movable bodies of a foot: itself and its toes."""
    parts = [foot]
    for part in parts:
        parts += _moved_by(model, part)
    return parts


def _foot_geoms(model: mujoco.MjModel, foot: int) -> list[int]:
    """Return the geoms of a foot and its toes that collide."""
    return [g for part in _foot_parts(model, foot) for g in _colliding(model, part)]


def _sole(model: mujoco.MjModel, data: mujoco.MjData, foot: int, count: int) -> list[int]:
    """Return the geoms of a foot, of two or four."""
    geoms = _foot_geoms(model, foot)
    if count == 2:
        return geoms
    return [min(geoms, key=lambda g: _lowest_point(model, data, g))]


def _lowest(model: mujoco.MjModel, data: mujoco.MjData, body: int) -> float | None:
    """Return the height of the lowest point of a foot and its toes; None if none collides [m]."""
    heights = [_lowest_point(model, data, g) for g in _foot_geoms(model, body)]
    return min(heights, default=None)


def _own_lowest(model: mujoco.MjModel, data: mujoco.MjData, body: int) -> float | None:
    """Return the height of the lowest point of a body's geoms; None if none collides [m]."""
    heights = [_lowest_point(model, data, g) for g in _colliding(model, body)]
    return min(heights, default=None)


def _lowest_point(model: mujoco.MjModel, data: mujoco.MjData, geom: int) -> float:
    down = data.geom_xmat[geom].reshape(3, 3)[2]
    height, size = float(data.geom_xpos[geom, 2]), model.geom_size[geom]
    kind = model.geom_type[geom]
    if kind == mujoco.mjtGeom.mjGEOM_SPHERE:
        return height - size[0]
    if kind == mujoco.mjtGeom.mjGEOM_CAPSULE:
        return height - size[0] - size[1] * abs(down[2])
    if kind == mujoco.mjtGeom.mjGEOM_MESH:
        mesh = model.geom_dataid[geom]
        start = model.mesh_vertadr[mesh]
        vertices = model.mesh_vert[start : start + model.mesh_vertnum[mesh]]
        return height + float((vertices @ down).min())
    center, half = model.geom_aabb[geom].reshape(2, 3)
    return height + float(down @ center - np.abs(down) @ half)


def _leg_joints(model: mujoco.MjModel, root: int, foot: int) -> Iterator[int]:
    """Yield the hinges from the root to a foot."""
    path, body = [], foot
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


def _drives(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    effort_limit: float | Mapping[str, float] | None,
) -> Iterator[tuple[int, JointDrive]]:
    """Yield the controlled joints: those with an actuator, or all hinges if there is none."""
    hinges = [j for j in range(model.njnt) if model.jnt_type[j] == mujoco.mjtJoint.mjJNT_HINGE]
    by_joint = {
        int(model.actuator_trnid[a, 0]): a
        for a in range(model.nu)
        if model.actuator_trntype[a] == mujoco.mjtTrn.mjTRN_JOINT
    }
    driven = [j for j in hinges if j in by_joint] if by_joint else hinges
    given = resolve_field(effort_limit, [model.joint(j).name for j in driven])
    efforts: dict[int, float] = {}
    for j, limit in zip(driven, given, strict=True):
        if effort := limit or _effort(model, j, by_joint.get(j)):
            efforts[j] = effort
    if lacking := [model.joint(j).name for j in driven if j not in efforts]:
        more = f" and {len(lacking) - _NAMED} others" if len(lacking) > _NAMED else ""
        raise ValueError(
            f"The model has no largest torque of {', '.join(lacking[:_NAMED])}{more}: add "
            "forcerange to their actuators or actuatorfrcrange to the joints, or give torques with "
            f"{_NEW_TASK} --effort-limit VALUE."
        )
    for j, effort in efforts.items():
        stiffness, damping = _gains(model, by_joint.get(j)) or (effort, 0.0)
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
    return (float(stiffness), float(damping)) if stiffness > 0.0 else None
