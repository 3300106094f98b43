"""Triangle meshes: files, checks, mass properties, and assets of MuJoCo."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

import mujoco
import numpy as np

from manyworlds.spec.mesh_files import MAX_TRIANGLES, MeshPart, read_mesh

_FLAT = 1e-6  # smallest extent, as a share of the largest one
_THIN = 1e-3  # extent from which on MuJoCo always finds a convex hull

Triangles = tuple[np.ndarray, np.ndarray]
"""Vertices [m], shape [num_vertices, 3], and triangles, shape [num_faces, 3]."""


def read_solid(path: str | Path) -> list[MeshPart]:
    """Read a mesh file whose triangles all refer to finite vertices.

    Args:
        path: the file, see `read_mesh`.

    Returns:
        The parts that have triangles, without vertices that no triangle has.

    Raises:
        MissingExtraError: the extra 'meshes' is not installed.
        FileNotFoundError: there is no such file.
        ValueError: it is too large, cannot be read, or has no valid triangles.
    """
    path = Path(path)
    parts = read_mesh(path)
    check_triangles(str(path), parts)
    return [_without_loose_vertices(part) for part in parts if len(part.faces)]


def check_triangles(name: str, parts: list[MeshPart]) -> None:
    """Check the triangles of a mesh.

    Raises:
        ValueError: there are none, too many, or vertices that are missing or no numbers.
    """
    count = sum(len(part.faces) for part in parts)
    if not count:
        raise ValueError(f"The mesh '{name}' is empty: it has no triangles.")
    if count > MAX_TRIANGLES:
        raise ValueError(
            f"The mesh '{name}' has {count} triangles, more than {MAX_TRIANGLES}: reduce them "
            "first."
        )
    for part in parts:
        if part.faces.size and not 0 <= part.faces.min() <= part.faces.max() < len(part.vertices):
            raise ValueError(
                f"The mesh '{name}' has triangles of vertices that are not there: repair it first."
            )
    vertices = np.concatenate([part.vertices for part in parts])
    bad = len(vertices) - int(np.isfinite(vertices).all(axis=1).sum())
    if bad:
        raise ValueError(
            f"The mesh '{name}' has {bad} of {len(vertices)} vertices that are not finite numbers: "
            "repair it first."
        )


def check_thickness(name: str, vertices: np.ndarray) -> None:
    """Check that vertices, shape [num_vertices, 3], are not in one plane.

    Raises:
        ValueError: they are.
    """
    if _thickness(vertices) <= _FLAT:
        raise ValueError(f"The mesh '{name}' is flat: give it a thickness.")


def has_hull(part: MeshPart) -> bool:
    """Return True if MuJoCo makes a convex hull of a part, which it refuses to do of flat ones."""
    thickness = _thickness(part.vertices)
    if thickness > _THIN:
        return True
    if thickness <= _FLAT:
        return False
    try:
        hull_properties(part.vertices)
    except ValueError:
        return False
    return True


def has_surface(part: MeshPart) -> bool:
    """Return True if MuJoCo takes a part for a mesh that is drawn and does not collide."""
    spec = mujoco.MjSpec()
    spec.assets["part.obj"] = obj_file(part.vertices, part.faces)
    mesh = spec.add_mesh(name="part", file="part.obj")
    mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
    spec.worldbody.add_geom(
        type=mujoco.mjtGeom.mjGEOM_MESH, meshname="part", contype=0, conaffinity=0
    )
    try:
        spec.compile()
    except ValueError:
        return False
    return True


def _thickness(vertices: np.ndarray) -> float:
    """Return the smallest extent of vertices, shape [num_vertices, 3], per the largest."""
    some = vertices[:: max(len(vertices) // 100_000, 1)]
    extents = np.linalg.svd(some - some.mean(axis=0), compute_uv=False)
    if len(extents) < 3 or not extents[0]:
        return 0.0
    return float(extents[-1] / extents[0])


def weld(parts: Iterable[MeshPart]) -> Triangles:
    """Return the triangles of all parts, with vertices at the same place merged."""
    corners = np.concatenate([part.vertices[part.faces].reshape(-1, 3) for part in parts])
    vertices, index = np.unique(corners, axis=0, return_inverse=True)
    faces = index.reshape(-1, 3).astype(np.int32)
    a, b, c = faces.T
    return vertices, faces[(a != b) & (b != c) & (c != a)]


def is_closed(faces: np.ndarray) -> bool:
    """Return True if each edge of welded triangles has two sides, as the surface of a solid."""
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]).astype(np.int64)
    base = faces.max() + 1
    one_way = np.sort(edges @ [base, 1])
    other_way = np.sort(edges @ [1, base])
    return bool((np.diff(one_way) > 0).all() and np.array_equal(one_way, other_way))


def mass_properties(solids: Iterable[Triangles]) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the mass properties of solids of density 1 by their closed surfaces.

    Returns:
        The volume [m^3], the center of mass [m], shape [3], and the inertia about it [m^5], shape
        [3, 3].
    """
    volume = 0.0
    first = np.zeros(3)
    second = np.zeros((3, 3))
    for vertices, faces in solids:
        corners = vertices[faces]  # [num_faces, corner, axis]
        origin = vertices.mean(axis=0)
        near = corners - origin
        six = np.einsum("ni,ni->n", near[:, 0], np.cross(near[:, 1], near[:, 2]))
        sign = 1.0 if six.sum() >= 0 else -1.0  # a surface may be inside out
        six *= sign
        total = near.sum(axis=1)
        own = six.sum() / 6
        moment = np.einsum("n,ni->i", six, total) / 24
        products = np.einsum("n,ni,nj->ij", six, total, total)
        products = (products + np.einsum("n,nci,ncj->ij", six, near, near)) / 120
        volume += own
        first += moment + own * origin
        shift = np.outer(moment, origin)
        second += products + shift + shift.T + own * np.outer(origin, origin)
    center = first / volume
    spread = second - volume * np.outer(center, center)
    return volume, center, np.trace(spread) * np.eye(3) - spread


def hull_properties(vertices: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the mass properties of the convex hull of points, shape [num_points, 3].

    See `mass_properties`.
    """
    spec = mujoco.MjSpec()
    mesh = spec.add_mesh(name="hull", uservert=vertices.ravel().tolist())
    mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX
    body = spec.worldbody.add_body()
    body.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="hull", density=1.0)
    model = spec.compile()
    axes = np.empty(9)
    mujoco.mju_quat2Mat(axes, model.body_iquat[1])
    turn = axes.reshape(3, 3)
    inertia = turn @ np.diag(model.body_inertia[1]) @ turn.T
    return float(model.body_mass[1]), model.body_ipos[1].copy(), inertia


def obj_file(vertices: np.ndarray, faces: np.ndarray, uv: np.ndarray | None = None) -> bytes:
    """Return an OBJ file, whose numbers have the precision of MuJoCo's meshes."""
    lines = [f"v {x:.9g} {y:.9g} {z:.9g}" for x, y, z in vertices.tolist()]
    names = [str(i + 1) for i in range(len(vertices))]
    if uv is not None:
        lines += [f"vt {u:.9g} {v:.9g}" for u, v in uv.tolist()]
        names = [f"{name}/{name}" for name in names]
    lines += [f"f {names[a]} {names[b]} {names[c]}" for a, b, c in faces.tolist()]
    return ("\n".join(lines) + "\n").encode()


def _without_loose_vertices(part: MeshPart) -> MeshPart:
    """Leave out vertices of no triangle, which MuJoCo's convex hull would include."""
    used, index = np.unique(part.faces, return_inverse=True)
    uv = None
    if part.uv is not None:
        uv = part.uv[used]
    faces = index.reshape(-1, 3).astype(np.int32)
    return dataclasses.replace(part, vertices=part.vertices[used], faces=faces, uv=uv)
