"""Part of a world that a camera should show."""

from __future__ import annotations

import mujoco
import numpy as np

from manyworlds.viewer.browser.layout import geom_boxes, ground_planes, static_body
from manyworlds.viewer.browser.overlays.shapes import Poses

_LARGE = 3.0
"""Size of fixed things, relative to what moves, from which on they are surroundings."""
_AWAY = 10.0
"""Distance from the rest, relative to its size, from which on a loose thing has flown away."""
_FLAT = (int(mujoco.mjtGeom.mjGEOM_PLANE), int(mujoco.mjtGeom.mjGEOM_HFIELD))
_NOTHING = np.array([[-0.5, -0.5, 0.0], [0.5, 0.5, 1.0]])


def frame_all(
    model: mujoco.MjModel, poses: Poses, drawn: list[int], points: np.ndarray
) -> np.ndarray:
    """Return the box around what moves, small fixed things beside it, and the floor below it.

    Loose things that flew away are left out.

    Args:
        model: the model.
        poses: state of the world.
        drawn: geoms that are drawn; if none of them moves, the others also count.
        points: vertices of skins and flexes [m], shape (n, 3).

    Returns:
        Lowest and highest corner [m], shape (2, 3); a cube of 1 m if there is nothing.
    """
    solid = [geom for geom in drawn if model.geom_type[geom] not in _FLAT]
    moves = [geom for geom in solid if _moves(model, geom)]
    if not moves and not len(points):
        moves = [geom for geom in range(model.ngeom) if _moves(model, geom)] or solid
    moves = _together(model, poses, moves)
    fixed = [geom for geom in solid if not _moves(model, geom)]
    box = _around(geom_boxes(model, moves, poses.geom_xpos, poses.geom_xmat), points)
    if box is None:
        return _NOTHING
    size = float(np.linalg.norm(box[1] - box[0]))
    beside = geom_boxes(model, fixed, poses.geom_xpos, poses.geom_xmat)
    small = np.linalg.norm(beside[:, 1] - beside[:, 0], axis=1) < _LARGE * size
    near = ((beside[:, 0] < box[1] + size) & (beside[:, 1] > box[0] - size)).all(axis=1)
    whole = _around(beside[small & near], box)
    assert whole is not None
    for plane in ground_planes(model):
        height = float(poses.geom_xpos[plane, 2])
        if box[0, 2] - size < height < box[0, 2]:
            whole[0, 2] = min(whole[0, 2], height)
    return whole


def frame_body(model: mujoco.MjModel, poses: Poses, body: int) -> np.ndarray:
    """Return the box around a body and those below it in the tree [m], shape (2, 3)."""
    bodies = {body}
    for child in range(body + 1, model.nbody):
        if int(model.body_parentid[child]) in bodies:
            bodies.add(child)
    geoms = [geom for geom in range(model.ngeom) if int(model.geom_bodyid[geom]) in bodies]
    around = 0.5 * float(model.stat.meansize)
    point = poses.xpos[body]
    box = _around(geom_boxes(model, geoms, poses.geom_xpos, poses.geom_xmat), point[None])
    assert box is not None
    return box + np.array([[-around], [around]])


def _together(model: mujoco.MjModel, poses: Poses, geoms: list[int]) -> list[int]:
    """Return geoms without those of loose things that are far from the rest, and were not."""
    if not geoms:
        return geoms
    boxes = geom_boxes(model, geoms, poses.geom_xpos, poses.geom_xmat)
    roots = model.body_rootid[model.geom_bodyid[geoms]]
    loose = {int(root) for root in roots if _is_loose(model, int(root))}
    kept = np.array([root not in loose for root in roots])
    if not kept.any():
        middles = boxes.mean(axis=1)
        far = np.linalg.norm(middles - np.median(middles, axis=0), axis=1)
        first = int(roots[np.argmin(far)])
        kept = roots == first
        loose.discard(first)
    added = True
    while added:
        low, high = boxes[kept].min(axis=(0, 1)), boxes[kept].max(axis=(0, 1))
        added = False
        for root in list(loose):
            own = boxes[roots == root]
            gap = np.maximum(own.min(axis=(0, 1)) - high, low - own.max(axis=(0, 1)))
            distance = float(np.linalg.norm(np.maximum(gap, 0.0)))
            start = model.qpos0[model.jnt_qposadr[model.body_jntadr[root]] :][:3]
            way = float(np.linalg.norm(poses.xpos[root] - start))
            if distance > _AWAY * float(np.linalg.norm(high - low)) and way > 0.5 * distance:
                continue
            kept |= roots == root
            loose.discard(root)
            added = True
    return [geom for geom, keep in zip(geoms, kept, strict=True) if keep]


def _is_loose(model: mujoco.MjModel, root: int) -> bool:
    """Return True if a free joint is the only joint of a body and of all below it."""
    joints = np.flatnonzero(model.body_rootid[model.jnt_bodyid] == root)
    return len(joints) == 1 and model.jnt_type[joints[0]] == mujoco.mjtJoint.mjJNT_FREE


def _moves(model: mujoco.MjModel, geom: int) -> bool:
    return not static_body(model, int(model.geom_bodyid[geom]))


def _around(boxes: np.ndarray, points: np.ndarray) -> np.ndarray | None:
    """Return the box around boxes, shape (n, 2, 3), and points, shape (n, 3)."""
    corners = np.concatenate([boxes.reshape(-1, 3), points])
    corners = corners[np.isfinite(corners).all(axis=1)]
    if not len(corners):
        return None
    return np.array([corners.min(axis=0), corners.max(axis=0)])
