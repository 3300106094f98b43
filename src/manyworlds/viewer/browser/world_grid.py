"""Worlds as batched meshes in a viser scene, side by side."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Hashable, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import mujoco
import numpy as np

from manyworlds.utils.extras import require_extra
from manyworlds.utils.viewer_config import ViewerConfig
from manyworlds.viewer.browser import geom_meshes
from manyworlds.viewer.browser.deformables import Deformables
from manyworlds.viewer.browser.ground import Ground
from manyworlds.viewer.browser.layout import (
    LOOSE_GAP,
    at_default,
    bounding_box,
    default_position,
    grid_slots,
    ground_of,
    is_landscape,
    static_body,
)
from manyworlds.viewer.browser.per_world_appearance import PerWorldAppearance
from manyworlds.viewer.browser.shapes import (
    SOLID_GEOMS,
    ShapeLayer,
    merge_instances,
    simplified,
)
from manyworlds.viewer.browser.sky import add_sky

if TYPE_CHECKING:
    import trimesh
    import viser

    from manyworlds.viewer.model_sync import ModelArrays

BodyAt = Callable[[int | None, np.ndarray], int]
"""Body of an instance of a mesh, or at a point of a skin or flex."""
OnMesh = Callable[["viser.BatchedGlbHandle | viser.MeshHandle", BodyAt], None]
"""Called with the handle of a mesh that was added, and the bodies that it draws."""
GroupKind = Literal["geom", "site"]
"""Kinds of elements that are drawn by groups."""
_ROOT = "/worlds"
_ACCENT = (38, 132, 255)
_IDENTITY = (1.0, 0.0, 0.0, 0.0)
_MAX_FACES = 2_000_000
"""Number of triangles that a usual graphics card draws smoothly: the selected world has all of
its own, the others share these."""
MAX_LABELS = 64
"""Largest number of labels: those of more worlds are too small to read."""
_LABEL_WIDTH = 0.6
"""Width of a label, as a share of the distance of neighboring worlds, so that none overlap."""
_CHARACTER = 0.6
"""Width of a label's character, by its height."""
_LARGEST = 0.02
"""Largest height of a letter, as a share of the extent of all worlds."""
_LINE = 2.0
"""Height of a label, by that of its letters."""
_POSE_BYTES = 28
_PARTS = ("type", "matid", "size", "rgba", "pos", "quat", "sameframe", "group")
LOOKS = (
    *(f"{kind}_{part}" for kind in ("geom", "site") for part in _PARTS),
    *("geom_dataid", "mat_rgba"),
)
"""Fields of the model that geoms and sites are drawn by."""
_Geom = mujoco.mjtGeom
_MESHES = (int(_Geom.mjGEOM_MESH), int(_Geom.mjGEOM_SDF))
"""Types of geoms whose surface is a mesh of the model."""
_MESHABLE = (*SOLID_GEOMS, *_MESHES, int(_Geom.mjGEOM_HFIELD), int(_Geom.mjGEOM_PLANE))


@dataclass(frozen=True)
class _Batch:
    """Mesh of some bodies in all worlds shown; a landscape is drawn once for all worlds."""

    handle: viser.BatchedGlbHandle
    body_ids: tuple[int, ...]
    copies: int
    faces: int
    coarse: bool = False
    """True if another batch draws the selected world, with all faces."""
    detail: bool = False
    """True if this draws the selected world only."""


class WorldGrid:
    """Draws some worlds of one model, each moved to its own place of a grid.

    The worlds stay where they are in the simulation; only the drawing is moved. Where static
    geometry is large (terrain), all worlds stand on it as they do in the simulation. Geoms and
    sites whose color, size, pose or mesh differs between worlds are drawn as each world has them.

    Args:
        server: server of the page.
        model: the model that all worlds share; it is only read.
        cfg: groups of geoms and sites to draw, and the view.
        count: number of worlds that are shown at once.
        sim_model: `sim.model`, for fields that differ between worlds.
        expanded_fields: `sim.expanded_fields`, the fields that differ.
        on_click: called with the index, among those shown, of a world that was clicked.
        can_select: whether worlds have labels, and the selected one is marked and has all faces.
        on_mesh: called with each mesh's handle, and a function that returns the body of an
            instance, or of a point of a skin or flex [m], shape (3,).

    Raises:
        MissingExtraError: the extra 'lab' is not installed.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        model: mujoco.MjModel,
        cfg: ViewerConfig,
        count: int,
        *,
        sim_model: ModelArrays | None = None,
        expanded_fields: Set[str] | None = None,
        on_click: Callable[[int], None] | None = None,
        can_select: bool = True,
        on_mesh: OnMesh | None = None,
    ) -> None:
        self.server = server
        self.count = count
        self.groups: dict[GroupKind, list[bool]] = {
            "geom": [bool(shown) for shown in cfg.geom_group],
            "site": [bool(shown) for shown in cfg.site_group],
        }
        """Groups of geoms and sites that are drawn; call `rebuild` after a change."""
        self._model = copy.copy(model)
        _show_own_colors(self._model)
        require_extra("trimesh", "lab")
        self._on_click = on_click
        self._can_select = can_select
        self._on_mesh = on_mesh
        self._nodes: list[viser.SceneNodeHandle] = []
        self._meshes: dict[tuple[int, ...], trimesh.Trimesh] = {}
        self._batches: list[_Batch] = []
        self._ground_geom = ground_of(model)
        self._appearance = PerWorldAppearance(self._model, sim_model, expanded_fields)
        self._shapes = ShapeLayer(
            server, f"{_ROOT}/varied", self._model, on_click, cast_shadow=True
        )
        self.deformables = Deformables(
            server, f"{_ROOT}/soft", self._model, count, self._note_deformable
        )
        """Skins and flexes."""
        self._drawable = self._drawable_geoms()
        self._place(cfg)
        with server.atomic():
            server.scene.configure_environment_map("studio", environment_intensity=0.4)
            server.scene.configure_default_lights(enabled=True, cast_shadow=True)
            size = float(np.ptp(self.box, axis=0).max())
            shown = float(np.ptp(self.shown_box(), axis=0).max())
            add_sky(server, max(shown, float(model.stat.extent)))
            self.ground = Ground(
                server, f"{_ROOT}/ground", self._model, size, shown, shared=count > 1
            )
            self._labels = self._add_labels()
            self._labels_fit = not self.landscape
            self._outline = self._add_outline()

    @property
    def bytes_per_update(self) -> int:
        """Size of the poses of all worlds in one update [byte]."""
        return sum(_POSE_BYTES * b.copies * len(b.body_ids) for b in self._batches if not b.detail)

    def shown_box(self, world: int | None = None) -> np.ndarray:
        """Return the box around all worlds shown, or around one of them [m], shape (2, 3)."""
        places = self.places
        if world is not None:
            places = places[world : world + 1]
        return np.array([places.min(axis=0) + self.box[0], places.max(axis=0) + self.box[1]])

    @property
    def drawn_geoms(self) -> list[int]:
        """Geoms that are drawn, apart from the ground."""
        return list(self._drawable)

    def offsets(self, anchors: np.ndarray) -> np.ndarray:
        """Return the displacement of each world in the drawing [m], shape (count, 3)."""
        anchors = np.where(np.isfinite(anchors), anchors, 0.0)
        if self.landscape:
            return -anchors
        return self.places - anchors

    def sync_appearance(self, worlds: slice) -> None:
        """Copy colors, sizes, poses and meshes of the worlds shown."""
        before = {kind: varied.copy() for kind, varied in self._appearance.varied.items()}
        self._appearance.read(worlds)
        # A batch draws a body with one mesh in all worlds, so elements in which worlds begin to
        # differ must leave it: they are drawn one by one, as shapes.
        new = any((before[kind] != now).any() for kind, now in self._appearance.varied.items())
        if new or not self._batches:
            self.rebuild()

    def rebuild(self) -> None:
        """Create the meshes again, for example after a change of `groups`."""
        with self.server.atomic():
            for batch in self._batches:
                batch.handle.remove()
            self._drawable = self._drawable_geoms()
            self._batches = self._add_meshes() + self._add_sites()

    def copy_looks(self, model: mujoco.MjModel) -> None:
        """Draw the geoms and sites as a model of the same sizes has them now."""
        for name in LOOKS:
            np.copyto(getattr(self._model, name), getattr(model, name))
        _show_own_colors(self._model)
        self._ground_geom = ground_of(self._model)
        self._meshes.clear()
        with self.server.atomic():
            self.ground.draw()
            self.rebuild()

    def update(
        self, positions: np.ndarray, quaternions: np.ndarray, anchors: np.ndarray, selected: int
    ) -> None:
        """Draw the bodies of the worlds shown.

        Args:
            positions: body positions [m], shape (count, nbody, 3).
            quaternions: body orientations (w, x, y, z), shape (count, nbody, 4).
            anchors: point of each world that is drawn at its place [m], shape (count, 3).
            selected: selected world, as an index among those shown.
        """
        if not self._batches:
            self.sync_appearance(slice(0, self.count))
        # A single NaN would make the browser drop the meshes of all worlds.
        finite = np.isfinite(positions).all(-1, keepdims=True)
        finite &= np.isfinite(quaternions).all(-1, keepdims=True)
        if not finite.all():
            quaternions = np.where(finite, quaternions, _IDENTITY)
            safe = np.where(np.isfinite(anchors), anchors, 0.0)
            positions = np.where(finite, positions, safe[:, None])
        offsets = self.offsets(anchors)
        drawn = (positions + offsets[:, None]).astype(np.float32)
        turned = quaternions.astype(np.float32)
        varied = [
            *self._appearance.instances("geom", self._drawable, drawn, turned),
            *self._appearance.instances("site", self._drawable_sites(), drawn, turned),
        ]
        # Viser sends only changes.
        with self.server.atomic():
            for batch in self._batches:
                bodies = list(batch.body_ids)
                rows = slice(batch.copies)
                if batch.detail:
                    rows = slice(selected, selected + 1)
                batch.handle.batched_positions = drawn[rows, bodies].reshape(-1, 3)
                batch.handle.batched_wxyzs = turned[rows, bodies].reshape(-1, 4)
                if batch.coarse:
                    # Another batch draws the selected world in detail at the same place.
                    scales = np.ones((batch.copies, len(bodies)), np.float32)
                    scales[selected] = 0.0
                    batch.handle.batched_scales = scales.reshape(-1)
            self._shapes.show(merge_instances(varied))
            self.deformables.update(positions, quaternions, offsets, selected)
            if self.landscape:
                # Worlds stay where they are on the terrain, so their places move with the robots.
                self.places = drawn[:, self._lead_body].astype(np.float64)
                self._move_labels()
            self._outline.position = self.places[selected]

    def set_labels(self, texts: list[str]) -> None:
        """Set the label above each world shown."""
        with self.server.atomic():
            for label, text in zip(self._labels, texts, strict=False):
                label.text = text

    def show(self, visible: bool) -> None:
        """Show or hide the meshes; the ground stays."""
        for batch in self._batches:
            batch.handle.visible = visible
        self.deformables.show(visible)

    def show_labels(self, visible: bool) -> None:
        """Show or hide the labels of the worlds."""
        with self.server.atomic():
            for label in self._labels:
                label.visible = visible

    def remove(self) -> None:
        """Remove everything from the scene."""
        with self.server.atomic():
            for node in [*self._nodes, *(batch.handle for batch in self._batches)]:
                node.remove()
            self._shapes.remove()
            self.ground.remove()
            self.deformables.remove()
            self._nodes.clear()
            self._batches.clear()

    def _place(self, cfg: ViewerConfig) -> None:
        """Compute the places of the worlds."""
        model = self._model
        geoms = self._drawable
        self.landscape = is_landscape(model, geoms)
        moving = [g for g in geoms if not static_body(model, int(model.geom_bodyid[g]))]
        if self.landscape:
            # A place is the position of the world's first moving body.
            self._lead_body = 0
            if moving:
                self._lead_body = int(model.geom_bodyid[moving[0]])
            self.box = bounding_box(model, moving) - default_position(model, self._lead_body)
            self.places = np.zeros((self.count, 3))
        else:
            self.box = self._box_of_world(geoms)
            gap = LOOSE_GAP
            if cfg.world_size is not None:
                half = cfg.world_size / 2.0
                self.box[0, :2] = np.minimum(self.box[0, :2], -half)
                self.box[1, :2] = np.maximum(self.box[1, :2], half)
                gap = 1.0
            self.places = grid_slots(self.count, np.ptp(self.box, axis=0), cfg.azimuth, gap)

    def _box_of_world(self, geoms: list[int]) -> np.ndarray:
        """Return the box around a world at its default state [m], shape (2, 3)."""
        data = at_default(self._model)
        points = self.deformables.bodies.points_at(data.xpos, data.xquat)
        if not len(points):
            return bounding_box(self._model, geoms)
        if geoms:
            points = np.concatenate([points, bounding_box(self._model, geoms)])
        return np.array([points.min(axis=0), points.max(axis=0)])

    def _shown(self, kind: GroupKind, element: int) -> bool:
        group = int(getattr(self._model, f"{kind}_group")[element])
        return group < 6 and self.groups[kind][group]

    def _drawable_geoms(self) -> list[int]:
        model = self._model
        drawable = []
        for geom in range(model.ngeom):
            material = int(model.geom_matid[geom])
            alpha = model.geom_rgba[geom, 3]
            if material >= 0:
                alpha = model.mat_rgba[material, 3]
            varied = self._appearance.varied["geom"][geom]
            if (
                geom == self._ground_geom
                or not self._shown("geom", geom)
                or (alpha == 0 and not varied)
            ):
                continue
            kind = int(model.geom_type[geom])
            absent = kind in _MESHES and model.geom_dataid[geom] < 0 and not varied
            if kind in _MESHABLE and not absent:
                drawable.append(geom)
        return drawable

    def _drawable_sites(self) -> list[int]:
        return [site for site in range(self._model.nsite) if self._shown("site", site)]

    def _add_meshes(self) -> list[_Batch]:
        """Add the meshes of bodies; bodies that look alike share one."""
        by_body: dict[int, list[int]] = {}
        for geom in self._drawable:
            if not self._appearance.varied["geom"][geom]:
                by_body.setdefault(int(self._model.geom_bodyid[geom]), []).append(geom)
        alike: dict[Hashable, tuple[list[int], list[int]]] = {}
        for body, own in by_body.items():
            # Geoms with different textures cannot share a mesh.
            by_look: dict[geom_meshes.Look, list[int]] = {}
            for geom in own:
                by_look.setdefault(geom_meshes.look_of(self._model, geom), []).append(geom)
            for group in by_look.values():
                key = static_body(self._model, body), self._look("geom", group)
                alike.setdefault(key, ([], group))[0].append(body)
        meshes = []
        sections = geom_meshes.round_sections(self._model, self._drawable)
        for bodies, group in alike.values():
            if tuple(group) not in self._meshes:
                mesh = geom_meshes.merge_geoms(self._model, group, sections)
                self._meshes[tuple(group)] = mesh
            meshes.append((bodies, self._meshes[tuple(group)]))
        faces = sum(len(bodies) * len(mesh.faces) for bodies, mesh in meshes) * self.count
        share = min(_MAX_FACES / max(faces, 1), 1.0)
        batches = []
        for i, (bodies, mesh) in enumerate(meshes):
            batches += self._add_levels(f"mesh_{i}", mesh, tuple(bodies), share)
        return batches

    def _add_levels(
        self, name: str, mesh: trimesh.Trimesh, bodies: tuple[int, ...], share: float
    ) -> list[_Batch]:
        """Draw a mesh with all faces, or with fewer of them in worlds that are not selected."""
        wanted = max(int(share * len(mesh.faces)), 100)
        static = static_body(self._model, bodies[0])
        if wanted >= len(mesh.faces) or static or self.count == 1:
            return [self._add_batch(name, mesh, bodies)]
        rough = simplified(mesh, wanted)
        if not self._can_select:
            return [self._add_batch(name, rough, bodies)]
        return [
            self._add_batch(name, rough, bodies, coarse=True),
            self._add_batch(f"{name}_detail", mesh, bodies, detail=True),
        ]

    def _look(self, kind: str, elements: list[int]) -> tuple[tuple[float, ...], ...]:
        """Return values that are equal for bodies that can share a mesh."""
        fields = ["type", "matid", "size", "rgba", "pos", "quat"]
        if kind == "geom":
            fields.append("dataid")
        columns = [getattr(self._model, f"{kind}_{field}")[elements] for field in fields]
        return tuple(tuple(np.round(column, 6).ravel().tolist()) for column in columns)

    def _add_sites(self) -> list[_Batch]:
        """Add the meshes of sites."""
        model = self._model
        by_body: dict[int, list[int]] = {}
        for site in self._drawable_sites():
            if model.site_rgba[site, 3] > 0 and not self._appearance.varied["site"][site]:
                by_body.setdefault(int(model.site_bodyid[site]), []).append(site)
        return [
            self._add_batch(f"sites_{body}", geom_meshes.merge_sites(model, own), (body,))
            for body, own in by_body.items()
        ]

    def _add_batch(
        self,
        name: str,
        mesh: trimesh.Trimesh,
        bodies: tuple[int, ...],
        *,
        coarse: bool = False,
        detail: bool = False,
    ) -> _Batch:
        static = self.landscape and static_body(self._model, bodies[0])
        copies = self.count
        if static or detail:
            copies = 1
        rows = copies * len(bodies)
        scales = None
        if coarse:
            scales = np.ones(rows)
        handle = self.server.scene.add_batched_glb(
            f"{_ROOT}/{name}",
            geom_meshes.to_glb(mesh),
            batched_wxyzs=np.tile(_IDENTITY, (rows, 1)),
            batched_positions=np.zeros((rows, 3)),
            batched_scales=scales,
            lod="off",
            cast_shadow=not static,
        )
        batch = _Batch(handle, bodies, copies, len(mesh.faces), coarse, detail)
        if self._on_mesh is not None:
            self._on_mesh(handle, lambda index, point: bodies[(index or 0) % len(bodies)])
        if self._on_click is not None and self.count > 1 and not (static or detail):
            on_click = self._on_click

            @handle.on_click
            def _(event: viser.SceneNodePointerEvent[viser.BatchedGlbHandle]) -> None:
                if event.instance_index is not None:
                    on_click(event.instance_index // len(bodies))

        return batch

    def _note_deformable(
        self, handle: viser.MeshHandle, body_at: Callable[[np.ndarray], int]
    ) -> None:
        """Report a mesh of a deformable body to the page."""
        if self._on_mesh is not None:
            self._on_mesh(handle, lambda index, point: body_at(point))

    def _add_labels(self) -> list[viser.LabelHandle]:
        """Add a label for each world, if there are few."""
        places = self.places
        if not self._can_select or not 1 < self.count <= MAX_LABELS:
            places = places[:0]
        labels = [
            self.server.scene.add_label(
                f"{_ROOT}/label_{i}",
                "",
                position=place + self._label_offset(),
                anchor="bottom-center",
                font_size_mode="scene",
                font_scene_height=self._label_height(),
            )
            for i, place in enumerate(places)
        ]
        self._nodes.extend(labels)
        return labels

    def _add_outline(self) -> viser.LineSegmentsHandle:
        """Add a rectangle on the ground around the selected world."""
        low = self.box[0, :2] - 0.1
        high = self.box[1, :2] + 0.1
        half = np.maximum((high - low) / 2, 0.3 * (high - low).max())
        center = (low + high) / 2
        corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * half + center
        points = np.column_stack(
            [corners, np.full(4, max(self.box[0, 2], self.ground.height) + 0.004)]
        )
        outline = self.server.scene.add_line_segments(
            f"{_ROOT}/selected",
            points=np.stack([points, np.roll(points, -1, axis=0)], axis=1).astype(np.float32),
            colors=_ACCENT,
            thickness=3.0,
            thickness_units="screen",
            visible=self._can_select and self.count > 1 and not self.landscape,
        )
        self._nodes.append(outline)
        return outline

    def _move_labels(self) -> None:
        """Draw labels above worlds that move; where worlds meet, one above the other."""
        if not self._labels:
            return
        height = self._labels[0].font_scene_height
        if not self._labels_fit:
            height = self._label_height()
            for label in self._labels:
                label.font_scene_height = height
            self._labels_fit = True
        between = np.linalg.norm(self.places[:, None] - self.places, axis=2)
        width = height * _CHARACTER * self._label_length
        below = np.tril(between < width, -1).sum(axis=1)
        positions = self.places + self._label_offset()
        positions[:, 2] += _LINE * height * below
        for label, position in zip(self._labels, positions, strict=True):
            label.position = position

    @property
    def _label_length(self) -> int:
        return len(f"world {self.count}")

    def _label_height(self) -> float:
        """Return the height of the letters of labels [m].

        Neighbors are those of a grid; worlds that move on a terrain are on average as far apart.
        """
        columns = math.sqrt(self.count)
        room = float(np.ptp(self.places, axis=0).max()) / columns
        if not self.landscape:
            room = float(np.linalg.norm(self.places[1:] - self.places[0], axis=1).min())
        room = max(room, float(np.ptp(self.box, axis=0).max()))
        extent = float(np.ptp(self.places, axis=0).max()) + room
        return min(_LABEL_WIDTH * room / (_CHARACTER * self._label_length), _LARGEST * extent)

    def _label_offset(self) -> np.ndarray:
        center = self.box.mean(axis=0)
        return np.array([center[0], center[1], self.box[1, 2] + 0.05])


def _show_own_colors(model: mujoco.MjModel) -> None:
    """Change a model so that a material does not hide a geom's own color, as in MuJoCo."""
    default = np.isclose(model.geom_rgba, (0.5, 0.5, 0.5, 1.0)).all(axis=1)
    own = np.asarray((model.geom_matid >= 0) & ~default)
    textured = np.asarray(np.any(model.mat_texid >= 0, axis=1))
    own[own] &= ~textured[model.geom_matid[own]]
    model.geom_matid[own] = -1
