"""Simple shapes and meshes as batched handles: one handle per shape, one row per instance."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from manyworlds.utils.extras import require_extra
from manyworlds.viewer.browser import geom_meshes, surfaces, textures
from manyworlds.viewer.browser.tones import surface_color

if TYPE_CHECKING:
    import trimesh
    import viser

    BatchedHandle = viser.BatchedMeshHandle | viser.BatchedGlbHandle

Shape = tuple[Any, ...]
"""Key of one handle: ('sphere',), ('box',), ('cylinder',), ('cone',), ('mesh', mesh id),
or ('textured', geom id, its type, mesh id, size, material id, color, textures of the material)."""

_Geom = mujoco.mjtGeom
SOLID_GEOMS = tuple(
    int(kind)
    for kind in (
        _Geom.mjGEOM_SPHERE,
        _Geom.mjGEOM_CAPSULE,
        _Geom.mjGEOM_ELLIPSOID,
        _Geom.mjGEOM_CYLINDER,
        _Geom.mjGEOM_BOX,
        _Geom.mjGEOM_MESH,
    )
)
"""Types of solid geoms, as opposed to planes, height fields and MuJoCo's symbols."""
_UNIT: dict[str, Callable[[], surfaces.Surface]] = {
    "sphere": surfaces.unit_sphere,
    "box": surfaces.unit_box,
    "cylinder": surfaces.unit_cylinder,
    "cone": surfaces.unit_cone,
}
_LEAST_CELLS = 3
_HEAD = 0.2
"""Length of an arrow's head, as a share of the arrow's, as drawn by MuJoCo."""


@dataclass
class Instances:
    """Poses, sizes and colors of a shape, one row per instance."""

    positions: np.ndarray
    """Positions [m], shape (n, 3)."""
    quaternions: np.ndarray
    """Orientations (w, x, y, z), shape (n, 4)."""
    scales: np.ndarray
    """Scales along the axes, shape (n, 3)."""
    rgba: np.ndarray
    """Colors (sRGB and opacity) from 0 to 1, shape (n, 4)."""
    worlds: np.ndarray
    """World of each instance, as an index among those shown, shape (n,)."""


def pieces(kind: int, mesh_id: int, size: np.ndarray) -> list[tuple[Shape, np.ndarray, np.ndarray]]:
    """Split a geom into shapes that can be scaled.

    Args:
        kind: a `mjtGeom`.
        mesh_id: the mesh of a mesh geom.
        size: sizes as an `MjvGeom` has them, shape (n, 3).

    Returns:
        For each piece its shape, its position along the geom's z axis [m], shape (n,), and its
        scale, shape (n, 3). Empty if the geom cannot be drawn.
    """
    none = np.zeros(len(size))
    radius = size[:, 0]
    half = size[:, 2]
    if kind in (_Geom.mjGEOM_SPHERE, _Geom.mjGEOM_ELLIPSOID):
        return [(("sphere",), none, size)]
    if kind == _Geom.mjGEOM_BOX:
        return [(("box",), none, size)]
    if kind == _Geom.mjGEOM_PLANE:
        return [(("box",), none, size * (1.0, 1.0, 0.0) + (0.0, 0.0, 5e-4))]
    if kind == _Geom.mjGEOM_CYLINDER:
        return [(("cylinder",), none, size)]
    if kind == _Geom.mjGEOM_CAPSULE:
        ball = np.repeat(radius[:, None], 3, axis=1)
        return [(("cylinder",), none, size), (("sphere",), half, ball), (("sphere",), -half, ball)]
    if kind in (_Geom.mjGEOM_ARROW, _Geom.mjGEOM_ARROW1, _Geom.mjGEOM_ARROW2):
        shaft = (1 - _HEAD) * half
        head = _HEAD * half
        return [
            (("cylinder",), shaft / 2, np.column_stack([radius, radius, shaft / 2])),
            (("cone",), shaft, np.column_stack([2 * radius, 2 * radius, head])),
        ]
    if kind in (_Geom.mjGEOM_LINE, _Geom.mjGEOM_LINEBOX):
        thin = np.full(len(size), 0.002)
        return [(("cylinder",), half / 2, np.column_stack([thin, thin, half / 2]))]
    if kind == _Geom.mjGEOM_MESH and mesh_id >= 0:
        return [(("mesh", mesh_id), none, np.ones_like(size))]
    return []


class ShapeLayer:
    """Draws instances of shapes, in place of those drawn before.

    Args:
        server: server of the page.
        path: prefix of the names of all handles in the scene.
        model: model with the meshes.
        on_click: called with the index of the world of an instance that was clicked.
        cast_shadow: whether the instances cast shadows.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        path: str,
        model: mujoco.MjModel,
        on_click: Callable[[int], None] | None = None,
        *,
        cast_shadow: bool = False,
    ) -> None:
        self._server = server
        self._path = path
        self._model = model
        self._on_click = on_click
        self._cast_shadow = cast_shadow
        self._handles: dict[Shape, BatchedHandle] = {}
        self._worlds: dict[Shape, np.ndarray] = {}

    @property
    def handles(self) -> dict[Shape, BatchedHandle]:
        """Handle of each shape drawn so far."""
        return self._handles

    def show(self, shapes: dict[Shape, Instances]) -> None:
        """Draw these instances only."""
        with self._server.atomic():
            for shape, handle in self._handles.items():
                handle.visible = shape in shapes
            for shape, instances in shapes.items():
                self._worlds[shape] = instances.worlds
                if shape in self._handles:
                    for name, value in _properties(shape, instances).items():
                        setattr(self._handles[shape], name, value)
                else:
                    self._handles[shape] = self._add(shape, instances)

    def remove(self) -> None:
        """Remove everything from the scene."""
        for handle in self._handles.values():
            handle.remove()
        self._handles.clear()

    def _add(self, shape: Shape, instances: Instances) -> BatchedHandle:
        """Add a handle that draws the instances of a shape."""
        name = f"{self._path}/{shape[0]}_{len(self._handles)}"
        options: dict[str, Any] = {"lod": "off", "cast_shadow": self._cast_shadow}
        options |= _properties(shape, instances)
        scene = self._server.scene
        if shape[0] == "textured":
            glb = geom_meshes.to_glb(_textured(self._model, shape))
            handle: BatchedHandle = scene.add_batched_glb(name, glb, **options)
        else:
            vertices, faces = _unit_mesh(self._model, shape)
            handle = scene.add_batched_meshes_simple(name, vertices, faces, **options)
        if self._on_click is not None:
            on_click = self._on_click

            @handle.on_click
            def _(event: viser.SceneNodePointerEvent[Any]) -> None:
                if event.instance_index is not None:
                    on_click(int(self._worlds[shape][event.instance_index]))

        return handle


def _properties(shape: Shape, instances: Instances) -> dict[str, Any]:
    """Return the properties of a handle that draws instances of a shape."""
    values: dict[str, Any] = {
        "batched_positions": instances.positions.astype(np.float32),
        "batched_wxyzs": instances.quaternions.astype(np.float32),
        "batched_scales": instances.scales.astype(np.float32),
    }
    if shape[0] != "textured":
        opacity = instances.rgba[:, 3].astype(np.float32)
        values["batched_colors"] = surface_colors(instances.rgba)
        values["batched_opacities"] = None
        if not (opacity >= 1.0).all():
            values["batched_opacities"] = opacity
    return values


def merge_instances(parts: Iterable[tuple[Shape, Instances]]) -> dict[Shape, Instances]:
    """Concatenate the instances of each shape."""
    by_shape: dict[Shape, list[Instances]] = {}
    for shape, instances in parts:
        by_shape.setdefault(shape, []).append(instances)
    merged: dict[Shape, Instances] = {}
    for shape, own in by_shape.items():
        columns = zip(*(vars(instances).values() for instances in own), strict=True)
        merged[shape] = Instances(*map(np.concatenate, columns))
    return merged


def surface_colors(rgba: np.ndarray) -> np.ndarray:
    """Return the colors of surfaces that look like MuJoCo's screen colors; uint8, (n, 3)."""
    return (255 * surface_color(rgba[:, :3])).round().astype(np.uint8)


def compose(
    positions: np.ndarray, quaternions: np.ndarray, local_pos: np.ndarray, local_quat: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return frames fixed in other frames: positions, shape (n, 3), quaternions, shape (n, 4)."""
    a = quaternions
    b = local_quat
    w = a[:, :1] * b[:, :1] - (a[:, 1:] * b[:, 1:]).sum(axis=1, keepdims=True)
    v = a[:, :1] * b[:, 1:] + b[:, :1] * a[:, 1:] + np.cross(a[:, 1:], b[:, 1:])
    return positions + rotate(quaternions, local_pos), np.concatenate([w, v], axis=1)


def rotate(quaternions: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Rotate vectors, shape (n, 3), by quaternions, shape (n, 4)."""
    w = quaternions[:, :1]
    axis = quaternions[:, 1:]
    twice = 2.0 * np.cross(axis, vectors)
    return vectors + w * twice + np.cross(axis, twice)


def simplified(mesh: trimesh.Trimesh, faces: int) -> trimesh.Trimesh:
    """Merge vertices that share a cell of a grid until a mesh has at most about so many faces.

    Source: Rossignac and Borrel, Multi-resolution 3D approximations for rendering, 1993.
    """
    require_extra("trimesh", "lab")
    from trimesh import Trimesh
    from trimesh.visual import ColorVisuals

    if len(mesh.faces) <= faces or not isinstance(mesh.visual, ColorVisuals):
        return mesh
    vertices = np.asarray(mesh.vertices)
    low = vertices.min(axis=0)
    extent = np.maximum(np.ptp(vertices, axis=0), 1e-9)
    # A surface of n cells along the longest side has about 4 n^2 faces.
    cells = max(int(np.sqrt(faces / 2.0)), _LEAST_CELLS)
    while True:
        # Thin meshes stay solid: there are some cells in each direction.
        size = np.minimum(extent.max() / cells, extent / _LEAST_CELLS)
        index = ((vertices - low) / size).round()
        _, first, cell = np.unique(index, axis=0, return_index=True, return_inverse=True)
        cell = cell.ravel()
        corners = cell[mesh.faces]
        corners = corners[(corners != np.roll(corners, 1, axis=1)).all(axis=1)]
        # Remove duplicate faces; a face and its reverse are two.
        turn = (np.arange(3) + corners.argmin(axis=1)[:, None]) % 3
        corners = np.unique(np.take_along_axis(corners, turn, axis=1), axis=0)
        if len(corners) <= faces or cells <= _LEAST_CELLS:
            break
        cells = max(int(cells * 0.85), _LEAST_CELLS)
    count = np.bincount(cell)[:, None]
    middle = np.stack([np.bincount(cell, vertices[:, i]) for i in range(3)], axis=1) / count
    colors = np.asarray(mesh.visual.vertex_colors)[first]
    return geom_meshes.sharpened(Trimesh(middle, corners, vertex_colors=colors, process=False))


def _unit_mesh(model: mujoco.MjModel, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Return the vertices and faces of a shape of unit size."""
    if shape[0] == "mesh":
        surface = geom_meshes.mesh_surface(model, shape[1])
    else:
        surface = _UNIT[shape[0]]()
    old, faces = surfaces.split_sharp_edges(surface.vertices, surface.faces)
    return surface.vertices[old], faces


def convex_hull(model: mujoco.MjModel, mesh: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a mesh's vertices and the faces of the convex hull that MuJoCo collides with.

    The graph begins with the numbers of vertices and faces; the faces are at its end, as indices of
    the mesh's vertices (source: MuJoCo's documentation of `mesh_graph`). A mesh without collisions
    has no hull; then these are its own faces.

    Returns:
        Vertices [m], shape (nvert, 3), and faces, shape (nface, 3).
    """
    start = int(model.mesh_graphadr[mesh])
    if start < 0:
        return _unit_mesh(model, ("mesh", mesh))
    first = int(model.mesh_vertadr[mesh])
    numvert, numface = model.mesh_graph[start : start + 2].tolist()
    begin = start + 2 + 3 * numvert + 3 * numface
    faces = model.mesh_graph[begin : begin + 3 * numface].reshape(-1, 3)
    return model.mesh_vert[first : first + int(model.mesh_vertnum[mesh])], faces


def _textured(model: mujoco.MjModel, shape: Shape) -> trimesh.Trimesh:
    """Return the mesh of a geom as it is in some worlds."""
    _, geom, kind, mesh_id, size, material, color, ids = shape
    own = copy.copy(model)
    own.geom_type[geom] = kind
    own.geom_dataid[geom] = mesh_id
    own.geom_size[geom] = size
    own.geom_matid[geom] = material
    own.mat_texid[material] = ids
    texture = textures.texture_of(own, material)
    surface = geom_meshes.geom_surface(own, geom)
    return geom_meshes.textured_mesh(own, texture, surface, np.array(color))
