"""Skins and flexes of worlds in a viser scene."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.viewer.browser import textures
from manyworlds.viewer.browser.geom_meshes import material_color
from manyworlds.viewer.browser.shapes import Instances, Shape, ShapeLayer, merge_instances
from manyworlds.viewer.browser.tones import surface_srgb

if TYPE_CHECKING:
    import viser

MAX_BYTES_PER_SECOND = 20e6
"""Data rate at which browsers keep up on one connection."""
_LEAST_RATE = 10.0  # of the frames of each world that is drawn [1/s]
_COLORS = 8
"""Number of colors of a mesh; meshes whose vertices move have neither textures nor own colors of
vertices in viser, so that one with a texture is divided into pieces of one color each."""
_SAMPLES = (
    np.array([[4, 1, 1], [1, 4, 1], [1, 1, 4], [2, 2, 2], [3, 3, 0], [3, 0, 3], [0, 3, 3]]) / 6
)
_Flag = mujoco.mjtVisFlag


@dataclass(frozen=True)
class Piece:
    """Triangles of one color."""

    vertices: np.ndarray
    """Vertices of the scene's skins or flexes, shape (n,)."""
    faces: np.ndarray
    """Triangles of these vertices, shape (m, 3)."""
    rgba: tuple[float, ...]
    skin: bool
    """True if the vertices are those of skins."""


class SoftBodies:
    """Vertices of all skins and flexes of a model, computed by MuJoCo from poses of bodies.

    Args:
        model: the model; it is only read.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        self._model = model
        self.pieces: list[Piece] = []
        """Triangles of skins and of surfaces of flexes."""
        self.cables: list[int] = []
        """Flexes that are lines."""
        if not (model.nskin or model.nflex):
            return
        self._data = mujoco.MjData(model)
        self._scene = mujoco.MjvScene(model, 1)
        self._camera = mujoco.MjvCamera()
        self._option = mujoco.MjvOption()
        self._option.flags[:] = 0
        for flag in (_Flag.mjVIS_SKIN, _Flag.mjVIS_FLEXSKIN):
            self._option.flags[flag] = 1
        self.skin = np.zeros((0, 3), np.float32)
        """Vertices of all skins [m], shape (nskinvert, 3)."""
        self.flex = np.zeros((0, 3), np.float32)
        """Vertices of the surfaces of all flexes [m], shape (n, 3)."""
        self.points = np.zeros((0, 3))
        """Vertices of all flexes [m], shape (nflexvert, 3)."""
        self._corners = np.zeros(0, int)
        self._flex_faces = self._weld()
        self.pieces += [*self._skin_pieces(), *self._flex_pieces()]
        lines = np.flatnonzero(model.flex_dim == 1).tolist()
        self.cables += [flex for flex in lines if self._option.flexgroup[model.flex_group[flex]]]

    def compute(self, xpos: np.ndarray, xquat: np.ndarray) -> None:
        """Compute all vertices.

        Args:
            xpos: positions of the bodies [m], shape (nbody, 3).
            xquat: orientations of the bodies (w, x, y, z), shape (nbody, 4).
        """
        model = self._model
        data = self._data
        data.xpos[:] = xpos
        data.xquat[:] = xquat
        if model.nflex:
            data.xmat[:] = _matrices(data.xquat)
            mujoco.mj_flex(model, data)
        self._draw()

    def points_at(self, xpos: np.ndarray, xquat: np.ndarray) -> np.ndarray:
        """Return the vertices of all skins and flexes at poses of the bodies [m], shape (n, 3)."""
        if not (self.pieces or self.cables):
            return np.zeros((0, 3))
        self.compute(xpos, xquat)
        own = [self.skin[piece.vertices] for piece in self.pieces if piece.skin]
        return np.concatenate([self.points, *own])

    def _draw(self) -> None:
        nothing = 0  # no geoms
        mujoco.mjv_updateScene(
            self._model, self._data, self._option, None, self._camera, nothing, self._scene
        )
        self.skin = self._scene.skinvert.reshape(-1, 3).copy()
        self.flex = self._scene.flexface.reshape(-1, 3)[self._corners]
        self.points = self._data.flexvert_xpos.copy()

    def vertices_of(self, piece: Piece) -> np.ndarray:
        """Return the positions of a piece's vertices, shape (num_vertices, 3)."""
        if piece.skin:
            return self.skin[piece.vertices]
        return self.flex[piece.vertices]

    def body_at(self, piece: Piece, point: np.ndarray) -> int:
        """Return the body that moves the vertex of a piece that is nearest to a point."""
        at = self.vertices_of(piece)
        nearest = int(piece.vertices[np.linalg.norm(at - point, axis=1).argmin()])
        model = self._model
        if not piece.skin:
            vertex = int(np.linalg.norm(self.points - self.flex[nearest], axis=1).argmin())
            return int(model.flex_vertbodyid[vertex])
        skin = int(np.searchsorted(model.skin_vertadr, nearest, side="right")) - 1
        first = int(model.skin_boneadr[skin])
        count = int(model.skin_bonenum[skin])
        bones = np.repeat(np.arange(first, first + count), model.skin_bonevertnum[first:][:count])
        start = int(model.skin_bonevertadr[first])
        own = slice(start, start + len(bones))
        here = model.skin_bonevertid[own] == nearest - model.skin_vertadr[skin]
        weights = np.where(here, model.skin_bonevertweight[own], -1.0)
        return int(model.skin_bonebodyid[bones[weights.argmax()]])

    def hit(self, origin: np.ndarray, direction: np.ndarray) -> tuple[float, int]:
        """Return the distance along a ray to the nearest triangle, and its body; -1 for none."""
        nearest = np.inf, 0
        for piece in self.pieces:
            at = np.ascontiguousarray(self.vertices_of(piece))
            vertex = np.zeros(1, np.int32)
            faces = np.ascontiguousarray(piece.faces, np.int32)
            distance = mujoco.mju_raySkin(len(faces), len(at), faces, at, origin, direction, vertex)
            if 0 <= distance < nearest[0]:
                nearest = distance, self.body_at(piece, at[vertex[0]].astype(np.float64))
        if not np.isfinite(nearest[0]):
            return -1.0, 0
        return nearest

    def _weld(self) -> list[np.ndarray]:
        """Find corners of triangles that are one vertex; return the triangles of each flex."""
        model = self._model
        if not model.nflex:
            return []
        # MuJoCo lists the corners of all triangles. At random places, only corners of the same
        # vertex coincide.
        random = np.random.default_rng(0)
        self._data.flexvert_xpos[:] = random.uniform(size=(model.nflexvert, 3))
        self._draw()
        corners = self._scene.flexface.reshape(-1, 3)
        faces = []
        for first, used in zip(self._scene.flexfaceadr, self._scene.flexfaceused, strict=True):
            own = corners[3 * first : 3 * (first + used)]
            _, index, inverse = np.unique(own, axis=0, return_index=True, return_inverse=True)
            faces.append(len(self._corners) + inverse.reshape(-1, 3))
            self._corners = np.append(self._corners, 3 * first + index)
        return faces

    def _skin_pieces(self) -> list[Piece]:
        """Return the pieces of the skins, of one color each."""
        model = self._model
        found = []
        for skin in range(model.nskin):
            if not self._option.skingroup[model.skin_group[skin]]:
                continue
            begin = int(model.skin_faceadr[skin])
            count = int(model.skin_facenum[skin])
            faces = model.skin_face[begin : begin + count]
            uv = None
            start = int(model.skin_texcoordadr[skin])
            if start >= 0:
                uv = model.skin_texcoord[start:][faces]
            material = int(model.skin_matid[skin])
            first = int(model.skin_vertadr[skin])
            rgba = material_color(model, material, model.skin_rgba[skin])
            for own, color in _divided(model, material, rgba, faces + first, uv):
                found.append(_piece(own, color, skin=True))
        return found

    def _flex_pieces(self) -> list[Piece]:
        """Return the pieces of the flexes, of one color each."""
        model = self._model
        found = []
        for flex, faces in enumerate(self._flex_faces):
            if not len(faces):
                continue
            begin = int(self._scene.flexfaceadr[flex])
            uv = None
            start = int(model.flex_texcoordadr[flex])
            if start >= 0:
                uv = self._scene.flextexcoord.reshape(-1, 3, 2)[begin : begin + len(faces)]
            material = _flex_material(model, flex)
            rgba = material_color(model, material, model.flex_rgba[flex])
            for own, color in _divided(model, material, rgba, faces, uv):
                found.append(_piece(own, color, skin=False))
        return found


class Deformables:
    """Draws skins and flexes of the selected world, and of as many others as the rate allows.

    Args:
        server: server of the page.
        path: prefix of the names of all handles in the scene.
        model: the model that all worlds share.
        count: number of worlds shown.
        on_mesh: called with each handle, and a function that returns the body at a point of it.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        path: str,
        model: mujoco.MjModel,
        count: int,
        on_mesh: Callable[[viser.MeshHandle, Callable[[np.ndarray], int]], None] | None = None,
    ) -> None:
        self.bodies = SoftBodies(model)
        """Vertices of the world that was drawn last: the selected one."""
        self._model = model
        self._server = server
        self._path = path
        self._on_mesh = on_mesh
        self.bytes_per_world = 12 * sum(len(piece.vertices) for piece in self.bodies.pieces)
        """Size of one frame of one world [byte]."""
        rate = _LEAST_RATE * max(self.bytes_per_world, 1)
        self.num_drawn = min(count, max(int(MAX_BYTES_PER_SECOND / rate), 1))
        """Number of worlds that are drawn."""
        self._handles: dict[tuple[int, int], viser.MeshHandle] = {}
        self._cables = ShapeLayer(server, f"{path}/cables", model, cast_shadow=True)
        self._due = 0.0
        self._visible = True

    @property
    def handles(self) -> list[viser.MeshHandle]:
        """Handles of all pieces drawn so far."""
        return list(self._handles.values())

    def update(
        self, xpos: np.ndarray, xquat: np.ndarray, offsets: np.ndarray, selected: int
    ) -> None:
        """Draw the worlds, unless that would exceed the data rate.

        Args:
            xpos: positions of the bodies [m], shape (count, nbody, 3).
            xquat: orientations of the bodies (w, x, y, z), shape (count, nbody, 4).
            offsets: displacement of each world in the drawing [m], shape (count, 3).
            selected: the selected world.
        """
        if not (self.bodies.pieces or self.bodies.cables):
            return
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + self.num_drawn * self.bytes_per_world / MAX_BYTES_PER_SECOND
        first = min(max(selected - self.num_drawn // 2, 0), len(xpos) - self.num_drawn)
        order = [w for w in range(first, first + self.num_drawn) if w != selected]
        cables = []
        for slot, world in enumerate([*order, selected]):
            self.bodies.compute(xpos[world], xquat[world])
            for number, piece in enumerate(self.bodies.pieces):
                self._show(slot, number, piece, offsets[world])
            cables += self._cable_shapes(offsets[world], world)
        if not self._visible:
            cables = []
        self._cables.show(merge_instances(cables))

    def show(self, visible: bool) -> None:
        """Show or hide everything."""
        self._visible = visible
        for handle in self._handles.values():
            handle.visible = visible

    def remove(self) -> None:
        """Remove everything from the scene."""
        for handle in self._handles.values():
            handle.remove()
        self._handles.clear()
        self._cables.remove()

    def _show(self, slot: int, number: int, piece: Piece, offset: np.ndarray) -> None:
        """Draw a piece of a world, or move it."""
        vertices = self.bodies.vertices_of(piece)
        if not np.isfinite(vertices).all():
            return  # a single NaN would make the browser drop the mesh
        handle = self._handles.get((slot, number))
        if handle is not None:
            handle.vertices = vertices
            handle.position = offset
            return
        opacity = piece.rgba[3]
        red, green, blue = surface_srgb(np.array(piece.rgba[:3])).tolist()
        transparency = None
        if opacity < 1:
            transparency = opacity
        handle = self._server.scene.add_mesh_simple(
            f"{self._path}/{slot}_{number}",
            vertices,
            piece.faces,
            color=(red, green, blue),
            opacity=transparency,
            side="double",
            position=offset,
            visible=self._visible,
        )
        self._handles[slot, number] = handle
        if self._on_mesh is not None:
            self._on_mesh(handle, lambda point: self.bodies.body_at(piece, point))

    def _cable_shapes(self, offset: np.ndarray, world: int) -> list[tuple[Shape, Instances]]:
        """Return cylinders along the edges of cables, and balls between them."""
        model = self._model
        parts = []
        for flex in self.bodies.cables:
            first = int(model.flex_vertadr[flex])
            count = int(model.flex_vertnum[flex])
            begin = int(model.flex_elemdataadr[flex])
            number = int(model.flex_elemnum[flex])
            at = self.bodies.points[first : first + count] + offset
            ends = at[model.flex_elem[begin : begin + 2 * number].reshape(-1, 2)]
            along = ends[:, 1] - ends[:, 0]
            length = np.linalg.norm(along, axis=1)
            quats = np.empty((number, 4))
            for quat, direction in zip(quats, along, strict=True):
                mujoco.mju_quatZ2Vec(quat, direction)
            radius = float(model.flex_radius[flex])
            rgba = material_color(model, _flex_material(model, flex), model.flex_rgba[flex])
            sizes = np.column_stack([np.full((number, 2), radius), length / 2])
            upright = np.tile((1.0, 0.0, 0.0, 0.0), (count, 1))
            for shape, place, quat, scale in (
                (("cylinder",), ends.mean(axis=1), quats, sizes),
                (("sphere",), at, upright, np.full((count, 3), radius)),
            ):
                colors = np.tile(rgba, (len(place), 1))
                worlds = np.full(len(place), world)
                parts.append((shape, Instances(place, quat, scale, colors, worlds)))
        return parts


def _matrices(quaternions: np.ndarray) -> np.ndarray:
    """Return rotation matrices, row by row, shape (n, 9)."""
    w, x, y, z = quaternions.T
    rows = [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)]
    rows += [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)]
    rows += [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z]
    return np.column_stack(rows)


def _flex_material(model: mujoco.MjModel, flex: int) -> int:
    """Return the material of a flex's first element, which all of them have as a rule."""
    return int(model.flex_matid[model.flex_elemadr[flex]])


def _piece(faces: np.ndarray, rgba: tuple[float, ...], *, skin: bool) -> Piece:
    vertices, index = np.unique(faces, return_inverse=True)
    return Piece(vertices, index.reshape(-1, 3).astype(np.uint32), rgba, skin)


def _divided(
    model: mujoco.MjModel,
    material: int,
    rgba: np.ndarray,
    faces: np.ndarray,
    uv: np.ndarray | None,
) -> list[tuple[np.ndarray, tuple[float, ...]]]:
    """Divide triangles by their mean color in a texture.

    Args:
        model: the model.
        material: their material; -1 for none.
        rgba: their color, or that which the texture is multiplied by, shape (4,).
        faces: the triangles, shape (m, 3).
        uv: texture coordinates of their corners, shape (m, 3, 2); None for none.

    Returns:
        Triangles of each color, and the color.
    """
    from PIL import Image

    texture = textures.texture_of(model, material)
    if texture < 0 or uv is None or textures.is_cube(model, texture):
        return [(faces, tuple(rgba.tolist()))]
    image = textures.pixels(model, texture)
    repeated: np.ndarray = uv * model.mat_texrepeat[material]
    at = np.einsum("sc,mck->msk", _SAMPLES, repeated) % 1.0
    at = at * (image.shape[1], image.shape[0])
    column, row = np.moveaxis(at.astype(int), -1, 0)
    color = image[row % image.shape[0], column % image.shape[1]].mean(axis=1)
    color = np.broadcast_to(color[:, :3], (len(faces), 3)).round().astype(np.uint8)
    few = Image.fromarray(np.ascontiguousarray(color[None])).quantize(_COLORS)
    kind = np.asarray(few)[0]
    return [
        (
            faces[kind == one],
            (*(color[kind == one].mean(axis=0) / 255.0 * rgba[:3]).tolist(), float(rgba[3])),
        )
        for one in np.unique(kind).tolist()
    ]
