"""Places of worlds on a page."""

from __future__ import annotations

import math

import mujoco
import numpy as np

# Static geometry larger than this is a landscape that all worlds share [m].
_LANDSCAPE_METERS = 15.0
LOOSE_GAP = 1.4
"""Distance of worlds, by their size at the initial state: bodies move and rotate."""


def static_body(model: mujoco.MjModel, body_id: int) -> bool:
    """Return True if a body is welded to the world and is not moved by a mocap body."""
    root = model.body_rootid[body_id]
    return bool(model.body_weldid[body_id] == 0 and model.body_mocapid[root] < 0)


def ground_planes(model: mujoco.MjModel) -> list[int]:
    """Return the geoms that are level floors of the world."""
    data = at_default(model)
    return [
        geom
        for geom in range(model.ngeom)
        if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_PLANE
        and static_body(model, int(model.geom_bodyid[geom]))
        and data.geom_xmat[geom, 8] > 0.99
    ]


def ground_of(model: mujoco.MjModel) -> int:
    """Return the lowest level floor, which is drawn as the ground; -1 without one."""
    height = at_default(model).geom_xpos[:, 2]
    return min(ground_planes(model), key=lambda geom: float(height[geom]), default=-1)


def bounding_box(model: mujoco.MjModel, geoms: list[int]) -> np.ndarray:
    """Return the box around geoms at the default state [m], shape (2, 3): lowest, highest.

    Without geoms it is a cube of one meter around the origin; infinite planes count as a point.
    """
    if not geoms:
        return np.array([[-0.5] * 3, [0.5] * 3])
    data = at_default(model)
    return box_around(model, geoms, data.geom_xpos, data.geom_xmat)


def box_around(
    model: mujoco.MjModel, geoms: list[int], xpos: np.ndarray, xmat: np.ndarray
) -> np.ndarray:
    """Return the box around some geoms [m], shape (2, 3), from the poses of all geoms."""
    boxes = geom_boxes(model, geoms, xpos, xmat)
    return np.array([boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)])


def geom_boxes(
    model: mujoco.MjModel, geoms: list[int], xpos: np.ndarray, xmat: np.ndarray
) -> np.ndarray:
    """Return the box around each of some geoms [m], shape (n, 2, 3), from the poses of all."""
    rotation = xmat[geoms].reshape(-1, 3, 3)
    middle, half = np.split(model.geom_aabb[geoms], 2, axis=1)
    planes = model.geom_type[geoms] == mujoco.mjtGeom.mjGEOM_PLANE
    # MuJoCo's box of a plane contains the half-space below it.
    middle[planes] = 0.0
    half[planes] = model.geom_size[geoms][planes] * (1.0, 1.0, 0.0)
    center = xpos[geoms] + (rotation @ middle[:, :, None])[:, :, 0]
    reach = (np.abs(rotation) @ half[:, :, None])[:, :, 0]
    return np.stack([center - reach, center + reach], axis=1)


def default_position(model: mujoco.MjModel, body_id: int) -> np.ndarray:
    """Return the position of a body at the default state [m], shape (3,)."""
    return at_default(model).xpos[body_id].copy()


def is_landscape(model: mujoco.MjModel, geoms: list[int]) -> bool:
    """Return True if static geometry among `geoms` is so large that worlds must share it."""
    static = [g for g in geoms if static_body(model, int(model.geom_bodyid[g]))]
    if any(model.geom_type[g] == mujoco.mjtGeom.mjGEOM_HFIELD for g in static):
        return True
    return bool(static) and float(np.ptp(bounding_box(model, static), axis=0).max()) > (
        _LANDSCAPE_METERS
    )


def grid_slots(count: int, size: np.ndarray, azimuth: float, gap: float = LOOSE_GAP) -> np.ndarray:
    """Place worlds on a grid around the origin, the first at the far left of the view.

    Args:
        count: number of worlds.
        size: size of a world's bounding box [m], shape (3,).
        azimuth: the camera's azimuth [degrees], which defines left and far.
        gap: distance of neighbors by `size`.

    Returns:
        Positions [m], shape (count, 3), on the ground.
    """
    # Rotations by 90 degrees keep the grid along the worlds' axes, so that boxes do not overlap.
    angle = math.radians(round(azimuth / 90) * 90)
    away = np.array([math.cos(angle), math.sin(angle), 0.0]).round()
    right = np.array([math.sin(angle), -math.cos(angle), 0.0]).round()
    # Bodies rotate, so even a thin world needs margins.
    room = np.maximum(gap * size, 0.9 * size.max())
    across = float(np.abs(right) @ room)
    along = float(np.abs(away) @ room)
    columns = min(range(1, count + 1), key=lambda n: max(n * across, -(-count // n) * along))
    rows = -(-count // columns)
    index = np.arange(count)
    column = index % columns
    row = index // columns
    x = (column - (columns - 1) / 2) * across
    y = ((rows - 1) / 2 - row) * along
    return x[:, None] * right + y[:, None] * away


def own_origins(origins: np.ndarray, roots: np.ndarray) -> np.ndarray:
    """Return the origins of worlds whose robots are at their origins; otherwise zeros.

    Args:
        origins: origins of the worlds [m], shape (count, 3).
        roots: position of a body of each world [m], shape (count, 3).

    Returns:
        Positions [m], shape (count, 3).
    """
    apart = np.nan_to_num(roots - roots.mean(axis=0))
    wanted = origins - origins.mean(axis=0)
    if np.linalg.norm(apart - wanted) < np.linalg.norm(apart):
        return origins
    return np.zeros_like(origins)


def at_default(model: mujoco.MjModel) -> mujoco.MjData:
    """Return data with the poses of the first keyframe, or of the model's initial state."""
    data = mujoco.MjData(model)
    if model.nkey:
        # The initial state of a scene's entities: a robot stands on the ground, not in it.
        mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_kinematics(model, data)
    return data
