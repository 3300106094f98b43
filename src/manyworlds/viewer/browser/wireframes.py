"""Wireframes of collision shapes."""

from __future__ import annotations

import mujoco
import numpy as np

from manyworlds.viewer.browser.shapes import convex_hull

_Geom = mujoco.mjtGeom
_SEGMENTS = 24


def wireframe_points(model: mujoco.MjModel, geom: int) -> np.ndarray:
    """Return the ends of the lines around a geom of `SOLID_GEOMS` [m], shape (n, 2, 3).

    They are in the geom's own frame. A mesh has the edges of its convex hull.
    """
    kind = int(model.geom_type[geom])
    size = model.geom_size[geom]
    if kind == _Geom.mjGEOM_BOX:
        corners = np.array(list(np.ndindex(2, 2, 2))) * 2.0 - 1.0
        pairs = [
            (i, j) for i in range(8) for j in range(i) if (corners[i] != corners[j]).sum() == 1
        ]
        return corners[np.array(pairs)] * size
    if kind == _Geom.mjGEOM_MESH:
        vertices, faces = convex_hull(model, int(model.geom_dataid[geom]))
        edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
        return vertices[np.unique(np.sort(edges, axis=1), axis=0)]
    x, y, z = np.eye(3)
    if kind in (_Geom.mjGEOM_SPHERE, _Geom.mjGEOM_ELLIPSOID):
        radii = size
        if kind == _Geom.mjGEOM_SPHERE:
            radii = size[0]
        return np.concatenate([_arc(x, y), _arc(y, z), _arc(z, x)]) * radii
    radius = size[0]
    half = size[1]
    rings = [radius * _arc(x, y) + side * half * z for side in (-1.0, 1.0)]
    sides = radius * np.array([x, y, -x, -y])[:, None] + half * np.stack([-z, z])
    caps = []
    if kind == _Geom.mjGEOM_CAPSULE:
        caps = [
            radius * _arc(across, side * z, np.pi) + side * half * z
            for side in (-1.0, 1.0)
            for across in (x, y)
        ]
    return np.concatenate([*rings, sides, *caps])


def _arc(a: np.ndarray, b: np.ndarray, angle: float = 2 * np.pi) -> np.ndarray:
    steps = np.linspace(0.0, angle, _SEGMENTS + 1)
    points = np.outer(np.cos(steps), a) + np.outer(np.sin(steps), b)
    return np.stack([points[:-1], points[1:]], axis=1)
