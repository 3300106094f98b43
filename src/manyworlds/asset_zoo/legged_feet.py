"""Feet of legged robots that the package does not know, and their geoms."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

_FOOT_SHARE = 0.15  # of the root's height: distance of a foot from the lowest point
_TOE_SHARE = 0.03  # of the root's height: distance of a foot from its toes' lowest point
_LEAST_STANCE = 0.25  # of the longest leg: height of the root of a robot that stands
_WHEEL_SHARE = 0.3  # of a geom's size: distance of its middle from the axis of a wheel
NEW_TASK = "manyworlds new-task NAME --robot FILE"
"""Command that takes what cannot be derived, for messages."""


def find_feet(
    model: mujoco.MjModel, data: mujoco.MjData, root: int, names: Sequence[str]
) -> list[int]:
    """Return the feet, by their bodies, in the order of the model."""
    if names:
        known = [model.body(b).name for b in range(1, model.nbody)]
        unknown = [name for name in names if name not in known]
        if unknown:
            raise ValueError(f"The model has no body {unknown}: choose feet from {known}.")
        found = sorted(int(model.body_weldid[model.body(name).id]) for name in names)
        bare = [model.body(b).name for b in found if not colliding_geoms(model, b)]
        if bare:
            raise ValueError(
                f"The feet {bare} have no geom that collides: name bodies that touch the ground, "
                "or give them geoms."
            )
    else:
        found = standing_feet(model, data, root)
    if len(found) not in (2, 4):
        ends = ", ".join(model.body(b).name for b in found) or "none"
        raise ValueError(
            "A legged robot has two or four feet, but the parts that reach the ground in its "
            f"default pose are {len(found)} ({ends}): name the last bodies of the legs with "
            f"{NEW_TASK} --feet BODY BODY, or add a keyframe 'home' in which it stands. A "
            f"robot with a fixed base takes {NEW_TASK} --fixed-base."
        )
    return found


def standing_feet(model: mujoco.MjModel, data: mujoco.MjData, root: int) -> list[int]:
    """Return the bodies on which a robot stands: the lowest ends of its legs; none if it lies.

    Toes belong to the foot above them if it also reaches the ground.
    """
    ends = [b for b in movable_bodies(model) if b != root and not moved_by(model, b)]
    lows: dict[int, float] = {}
    for body in ends:
        low = own_lowest(model, data, body)
        if low is not None:
            lows[body] = low
    ground = min(lows.values(), default=0.0)
    height = max(data.xpos[root, 2] - ground, 0.0)
    lowest = [b for b, low in lows.items() if low <= ground + _FOOT_SHARE * height]
    longest = max((_leg_length(model, data, root, b) for b in lowest), default=0.0)
    if height < _LEAST_STANCE * longest:
        return []
    found = set()
    for toe in lowest:
        foot = _parent(model, toe)
        low = None
        if foot != root:
            low = own_lowest(model, data, foot)
        if low is not None and low <= lows[toe] + _TOE_SHARE * height:
            found.add(foot)  # it has toes
        else:
            found.add(toe)
    return sorted(found)


def wheels_among(model: mujoco.MjModel, feet: Sequence[str]) -> list[str]:
    """Return the feet that turn without limits about the middle of what touches the ground.

    Args:
        model: the robot.
        feet: names of bodies.
    """
    wheels = []
    for name in feet:
        body = int(model.body_weldid[model.body(name).id])
        geoms = colliding_geoms(model, body)
        first = int(model.body_jntadr[body])
        if first < 0 or not geoms:
            continue
        hinge = mujoco.mjtJoint(model.jnt_type[first]) == mujoco.mjtJoint.mjJNT_HINGE
        low, high = model.jnt_range[first]
        endless = not model.jnt_limited[first] or high - low >= 2.0 * np.pi
        largest = max(geoms, key=lambda geom: float(model.geom_rbound[geom]))
        own = model.geom_bodyid[largest] == body
        middle = np.linalg.norm(model.geom_pos[largest] - model.jnt_pos[first])
        if hinge and endless and own and middle < _WHEEL_SHARE * model.geom_rbound[largest]:
            wheels.append(name)
    return wheels


def wheel_warning(wheels: Sequence[str]) -> str:
    """Return what to say of feet that are wheels."""
    return (
        f"The feet {list(wheels)} are probably wheels, since they turn without limits about their "
        "middle: the task expects legs that step and hold such joints in one position. Write a "
        "task with velocity actions for them, or name other bodies as feet."
    )


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


def moved_by(model: mujoco.MjModel, body: int) -> list[int]:
    """Return the movable bodies that hang at a movable body."""
    return [b for b in movable_bodies(model) if _parent(model, b) == body]


def movable_bodies(model: mujoco.MjModel) -> list[int]:
    """Return the bodies with joints: each stands for itself and what is fixed to it."""
    return [b for b in range(1, model.nbody) if model.body_weldid[b] == b]


def geom_collides(model: mujoco.MjModel, geom: int) -> bool:
    """Return True if a geom collides with any other one."""
    return bool(model.geom_contype[geom] or model.geom_conaffinity[geom])


def colliding_geoms(model: mujoco.MjModel, body: int) -> list[int]:
    """Return the geoms that collide of a body and of what is fixed to it."""
    fixed = model.body_weldid[model.geom_bodyid] == body
    return [int(g) for g in np.flatnonzero(fixed) if geom_collides(model, int(g))]


def _foot_parts(model: mujoco.MjModel, foot: int) -> list[int]:
    """Return the movable bodies of a foot: itself and its toes."""
    parts = [foot]
    for part in parts:
        parts += moved_by(model, part)
    return parts


def geoms_of_foot(model: mujoco.MjModel, foot: int) -> list[int]:
    """Return the geoms of a foot and its toes that collide."""
    return [g for part in _foot_parts(model, foot) for g in colliding_geoms(model, part)]


def sole_geoms(model: mujoco.MjModel, data: mujoco.MjData, foot: int, count: int) -> list[int]:
    """Return the geoms of a foot, of two or four."""
    geoms = geoms_of_foot(model, foot)
    if count == 2:
        return geoms
    return [min(geoms, key=lambda g: lowest_point(model, data, g))]


def sole_center(model: mujoco.MjModel, data: mujoco.MjData, foot: int, count: int) -> np.ndarray:
    """Return the mean position of the geoms of a foot, of two or four [m], shape [3]."""
    return data.geom_xpos[sole_geoms(model, data, foot, count)].mean(axis=0)


def lowest_of_foot(model: mujoco.MjModel, data: mujoco.MjData, body: int) -> float | None:
    """Return the height of the lowest point of a foot and its toes; None if none collides [m]."""
    heights = [lowest_point(model, data, g) for g in geoms_of_foot(model, body)]
    return min(heights, default=None)


def own_lowest(model: mujoco.MjModel, data: mujoco.MjData, body: int) -> float | None:
    """Return the height of the lowest point of a body's geoms; None if none collides [m]."""
    heights = [lowest_point(model, data, g) for g in colliding_geoms(model, body)]
    return min(heights, default=None)


def lowest_point(model: mujoco.MjModel, data: mujoco.MjData, geom: int) -> float:
    """Return the height of the lowest point of a geom [m]."""
    down = data.geom_xmat[geom].reshape(3, 3)[2]
    height = float(data.geom_xpos[geom, 2])
    size = model.geom_size[geom]
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
