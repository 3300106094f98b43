"""Triangle surfaces of simple shapes, with texture coordinates, and their sharp edges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

SECTIONS = 32
"""Number of faces around a round shape, unless a world has many."""
_SHARP = np.cos(np.radians(40.0))
"""Cosine of the angle between faces from which on an edge is drawn as an edge."""
_HIDDEN = 0.02
"""Depth of hidden faces, relative to the height of the visible ones."""


@dataclass
class Surface:
    """Triangles, and a texture coordinate of each vertex."""

    vertices: np.ndarray
    """Positions, shape (n, 3)."""
    faces: np.ndarray
    """Vertices of each triangle, counterclockwise from outside, shape (m, 3)."""
    uv: np.ndarray
    """Texture coordinates as MuJoCo counts them: v is 0 in the first row of the image; (n, 2)."""


def join(parts: Iterable[Surface]) -> Surface:
    """Return one surface that consists of some surfaces."""
    parts = list(parts)
    starts = np.cumsum([0, *(len(part.vertices) for part in parts[:-1])])
    return Surface(
        np.concatenate([part.vertices for part in parts]),
        np.concatenate(
            [part.faces + start for part, start in zip(parts, starts.tolist(), strict=True)]
        ),
        np.concatenate([part.uv for part in parts]),
    )


def unit_sphere(sections: int = SECTIONS) -> Surface:
    """Return a sphere of radius 1."""
    latitude = np.linspace(-0.5, 0.5, sections // 2 + 1) * np.pi
    return _revolved(np.cos(latitude), np.sin(latitude), 0.5 - latitude / np.pi, sections)


def unit_cylinder(sections: int = SECTIONS) -> Surface:
    """Return a closed cylinder of radius 1 from -1 to 1."""
    return join([_tube(sections), _disk(1.0, sections), _disk(-1.0, sections)])


def unit_cone() -> Surface:
    """Return a closed cone of radius 1 from 0 to 1."""
    side = _revolved(np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([1.0, 0.0]), SECTIONS)
    base = _disk(-1.0, SECTIONS)
    base.vertices[:, 2] = 0.0
    return join([side, base])


def unit_capsule(sections: int = SECTIONS) -> Surface:
    """Return a cylinder of radius 1 from -1 to 1 with half spheres on it, to be stretched."""
    angle = np.linspace(0.0, 0.5, sections // 4 + 1) * np.pi
    top = _revolved(np.cos(angle), 1.0 + np.sin(angle), 1.0 - 2.0 * angle / np.pi, sections)
    below = angle[::-1]
    bottom = _revolved(np.cos(below), -1.0 - np.sin(below), 2.0 * below / np.pi, sections)
    return join([bottom, _tube(sections), top])


def unit_box() -> Surface:
    """Return a box from -1 to 1 in all directions."""
    return join(_square(axis, side) for axis in range(3) for side in (-1.0, 1.0))


def unit_plane() -> Surface:
    """Return a square from -1 to 1 at height 0, visible from both sides."""
    top = _square(2, 1.0)
    bottom = _square(2, -1.0)
    top.vertices[:, 2] = bottom.vertices[:, 2] = 0.0
    return join([top, bottom])


def grid_faces(rows: int, columns: int) -> np.ndarray:
    """Return the triangles between the points of a grid, row by row, shape (m, 3).

    All diagonals have one direction, so that each point of a row has the same triangles around it:
    those of every second point would differ otherwise, and its normal, which shows as stripes.
    """
    row, column = np.mgrid[: rows - 1, : columns - 1]
    corner = (row * columns + column).ravel()
    right = corner + 1
    up = corner + columns
    over = corner + columns + 1
    return np.concatenate(
        [np.column_stack([corner, right, over]), np.column_stack([corner, over, up])]
    )


def _revolved(radius: np.ndarray, height: np.ndarray, v: np.ndarray, sections: int) -> Surface:
    """Rotate a profile, given upwards, about the z axis; u is the angle."""
    u = np.linspace(0.0, 1.0, sections + 1)
    ring = np.column_stack([np.cos(2 * np.pi * u), np.sin(2 * np.pi * u)])
    ring[-1] = ring[0]
    xy = radius[:, None, None] * ring
    z = np.broadcast_to(height[:, None, None], (*xy.shape[:2], 1))
    uv = np.stack(np.broadcast_arrays(u[None], v[:, None]), axis=-1)
    vertices = np.concatenate([xy, z], axis=-1).reshape(-1, 3)
    faces = grid_faces(len(radius), sections + 1)
    return Surface(vertices, faces, uv.reshape(-1, 2))


def _tube(sections: int) -> Surface:
    ends = np.array([-1.0, 1.0])
    return _revolved(np.ones(2), ends, 0.5 - ends / 2, sections)


def _disk(side: float, sections: int) -> Surface:
    profile = np.array([1.0, 0.0])
    if side < 0:
        profile = np.array([0.0, 1.0])
    disk = _revolved(profile, np.full(2, side), np.zeros(2), sections)
    disk.uv = 0.5 + disk.vertices[:, :2] / 2
    return disk


def _square(axis: int, side: float) -> Surface:
    """Return a side of a box."""
    a = np.array([-1.0, 1.0, -1.0, 1.0])
    b = np.array([-1.0, -1.0, 1.0, 1.0])
    vertices = np.insert(np.column_stack([a, b]), axis, side, axis=1)
    faces = grid_faces(2, 2)
    # x, z is a left-handed pair of axes.
    if (side < 0) != (axis == 1):
        faces = faces[:, ::-1]
    return Surface(vertices, faces, np.column_stack([0.5 + a / 2, 0.5 - b / 2]))


def split_sharp_edges(
    vertices: np.ndarray, faces: np.ndarray, attributes: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Divide vertices so that a browser draws sharp edges sharp and everything else smooth.

    Browsers compute a vertex's normal from all faces that share the vertex.

    Args:
        vertices: positions, shape (n, 3); equal positions count as one vertex.
        faces: triangles, shape (m, 3).
        attributes: values by which vertices differ apart from their positions, such as texture
            coordinates, shape (n, k).

    Returns:
        For each new vertex one of the given ones, shape (new,), and triangles of new vertices;
        those without an area are left out.
    """
    # By position, since files may list a vertex once for each of its faces.
    _, point = np.unique(_rounded(vertices), axis=0, return_inverse=True)
    corners = point.ravel()[faces]
    # A triangle with two corners at one position has no normal.
    whole = (corners != np.roll(corners, 1, axis=1)).all(axis=1)
    faces = faces[whole]
    corners = corners[whole]
    groups = _smooth_groups(_unit(_face_normals(vertices, faces)), corners)
    own = faces.ravel()
    if attributes is not None:
        _, kind = np.unique(_rounded(attributes), axis=0, return_inverse=True)
        groups = groups * (int(kind.max(initial=0)) + 1) + kind.ravel()[own]
    # One vertex for the corners of each group.
    _, first, new = np.unique(groups, return_index=True, return_inverse=True)
    return own[first], new.reshape(-1, 3)


@dataclass
class HiddenFaces:
    """Triangles below a surface that join the normals on both sides of its seams."""

    vertices: np.ndarray
    """Positions of further vertices, shape (k, 3)."""
    sources: np.ndarray
    """Vertex at the seam that each of them belongs to, shape (k,)."""
    faces: np.ndarray
    """Triangles; further vertices are numbered after the surface's own, shape (k / 2, 3)."""


def hidden_faces(vertices: np.ndarray, faces: np.ndarray) -> HiddenFaces:
    """Return triangles that make the normals of a surface smooth where its texture has seams.

    Browsers compute the normal of a vertex from the faces that share it. At a seam, several
    vertices have one position, and each would get the normal of its own side. These triangles give
    each of them also the faces of the other sides, a little below the visible ones.

    Args:
        vertices: positions, shape (n, 3).
        faces: triangles with an area, shape (m, 3).
    """
    _, point = np.unique(_rounded(vertices), axis=0, return_inverse=True)
    normals = _face_normals(vertices, faces)
    groups = _smooth_groups(_unit(normals), point.ravel()[faces])
    own = faces.ravel()
    # Groups of corners with one smooth normal, each with its vertices: several only at a seam.
    pairs = np.unique(np.column_stack([groups, own]), axis=0)
    _, start, count = np.unique(pairs[:, 0], return_index=True, return_counts=True)
    place = np.searchsorted(pairs[start, 0], groups)
    # Each corner at a seam, once for each vertex of the seam there; then without its own vertex.
    repeats = np.where(count[place] > 1, count[place], 0)
    corner = np.repeat(np.arange(len(own)), repeats)
    turn = np.arange(len(corner)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    source = pairs[start[place[corner]] + turn, 1]
    is_other = source != own[corner]
    corner = corner[is_other]
    source = source[is_other]
    face = corner // 3
    others = faces[face[:, None], (corner[:, None] + (1, 2)) % 3]
    at = vertices[faces[face]]
    longest = np.linalg.norm(at - np.roll(at, 1, axis=1), axis=2).max(axis=1)
    depth = _HIDDEN * normals[face] / longest[:, None]  # normals are as long as twice the area
    further = len(vertices) + np.arange(2 * len(face)).reshape(-1, 2)
    return HiddenFaces(
        (vertices[others] - depth[:, None]).reshape(-1, 3),
        np.repeat(source, 2),
        np.column_stack([source, further]),
    )


def vertex_normals(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Return the mean normal of the faces of each vertex, weighted by their areas, (n, 3)."""
    corners = np.repeat(_face_normals(vertices, faces), 3, axis=0)
    index = faces.ravel()
    count = len(vertices)
    return _unit(np.stack([np.bincount(index, corners[:, i], count) for i in range(3)], axis=1))


def _face_normals(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Return normals as long as twice the area of each face, shape (m, 3)."""
    a, b, c = (vertices[faces[:, i]].astype(np.float64) for i in range(3))
    return np.cross(b - a, c - a)


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)


def _rounded(values: np.ndarray) -> np.ndarray:
    """Round values to a millionth of the largest one."""
    return (values * (1e6 / max(float(np.abs(values).max(initial=0.0)), 1e-300))).round()


def _smooth_groups(normals: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Return a number of each corner of each face, equal for those with one smooth normal."""
    # The edge i of a face begins at its corner i.
    begin = corners.ravel()
    end = np.roll(corners, -1, axis=1).ravel()
    low = np.minimum(begin, end)
    high = np.maximum(begin, end)
    # Sorted by their ends, the two faces of an edge follow each other.
    order = np.lexsort((high, low))
    same = (np.diff(low[order]) == 0) & (np.diff(high[order]) == 0)
    a = order[:-1][same]
    b = order[1:][same]
    smooth = (normals[a // 3] * normals[b // 3]).sum(axis=1) > _SHARP
    a = a[smooth]
    b = b[smooth]
    after_a = a - a % 3 + (a + 1) % 3
    after_b = b - b % 3 + (b + 1) % 3
    opposite = begin[a] == end[b]  # as it should be between neighbors with one orientation
    pairs = np.concatenate(
        [
            np.column_stack([a, np.where(opposite, after_b, b)]),
            np.column_stack([after_a, np.where(opposite, b, after_b)]),
        ]
    )
    groups = np.arange(corners.size)
    while True:  # as often as the longest chain of faces around a vertex
        lowest = np.minimum(groups[pairs[:, 0]], groups[pairs[:, 1]])
        before = groups.copy()
        np.minimum.at(groups, pairs[:, 0], lowest)
        np.minimum.at(groups, pairs[:, 1], lowest)
        groups = groups[groups]
        if (groups == before).all():
            return groups
