"""Worlds as batched meshes in a viser scene, side by side."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from manyworlds.utils.extras import require_extra
from manyworlds.utils.viewer_config import ViewerConfig
from manyworlds.viewer.viser.layout import (
    bounding_box,
    default_position,
    grid_slots,
    ground_planes,
    is_landscape,
    static_body,
)

if TYPE_CHECKING:
    import viser

_ROOT = "/worlds"
_ACCENT = (38, 132, 255)
_GROUND = (228, 232, 236)
_IDENTITY = (1.0, 0.0, 0.0, 0.0)
_Geom = mujoco.mjtGeom
_MESHABLE = {
    int(kind)
    for kind in (
        _Geom.mjGEOM_HFIELD,
        _Geom.mjGEOM_SPHERE,
        _Geom.mjGEOM_CAPSULE,
        _Geom.mjGEOM_ELLIPSOID,
        _Geom.mjGEOM_CYLINDER,
        _Geom.mjGEOM_BOX,
        _Geom.mjGEOM_MESH,
    )
}


@dataclass(frozen=True)
class _Batch:
    """One mesh of one body, drawn once for each world shown (a landscape: once for all)."""

    handle: viser.BatchedGlbHandle
    body_id: int
    copies: int


class WorldGrid:
    """Draws some worlds of one model, each moved to its own place of a grid.

    The worlds stay where they are in the simulation; only the drawing is moved. Where static
    geometry is large (terrain), all worlds stand on it as they do in the simulation.

    Args:
        server: where to draw.
        model: the model that all worlds share; it is only read.
        cfg: which geom and site groups to draw, and from where.
        count: how many worlds are shown at once.

    Raises:
        MissingExtraError: the extra 'lab' is not installed.
    """

    def __init__(
        self, server: viser.ViserServer, model: mujoco.MjModel, cfg: ViewerConfig, count: int
    ) -> None:
        self.server = server
        self.count = count
        self._model = model
        self._cfg = cfg
        self._conversions: Any = require_extra("mjviser.conversions", "lab")
        self._nodes: list[Any] = []
        self._placed: dict[str, np.ndarray] = {}
        planes = ground_planes(model)
        geoms = self._drawable_geoms(planes)
        self.landscape = is_landscape(model, geoms)
        moving = [g for g in geoms if not static_body(model, int(model.geom_bodyid[g]))]
        if self.landscape:
            # Places are where the worlds' first moving body is.
            self._lead_body = int(model.geom_bodyid[moving[0]]) if moving else 0
            self.box = bounding_box(model, moving) - default_position(model, self._lead_body)
            self.places = np.zeros((count, 3))
        else:
            self.box = bounding_box(model, geoms)
            self.places = grid_slots(count, np.ptp(self.box, axis=0), cfg.azimuth)
        with server.atomic():
            self._light()
            self._add_ground(planes)
            self._batches = self._add_meshes(geoms) + self._add_sites()
            self._labels = self._add_labels()
            self._outline = self._add_outline()

    def shown_box(self, world: int | None = None) -> np.ndarray:
        """Return the box around all worlds shown, or around one of them [m], shape (2, 3)."""
        places = self.places if world is None else self.places[world : world + 1]
        return np.array([places.min(axis=0) + self.box[0], places.max(axis=0) + self.box[1]])

    def update(
        self, positions: np.ndarray, quaternions: np.ndarray, anchors: np.ndarray, selected: int
    ) -> None:
        """Draw the bodies of the worlds shown.

        Args:
            positions: body positions [m], shape (count, nbody, 3).
            quaternions: body orientations (w, x, y, z), shape (count, nbody, 4).
            anchors: the point of each world that is drawn at its place [m], shape (count, 3).
            selected: which of the worlds shown is selected.
        """
        # One NaN would make the browser drop the meshes of all worlds.
        values = np.concatenate([positions, quaternions], axis=-1)
        finite = np.isfinite(values).all(axis=-1, keepdims=True)
        anchors = np.where(np.isfinite(anchors), anchors, 0.0)
        quaternions = np.where(finite, quaternions, _IDENTITY)
        positions = np.where(finite, positions, anchors[:, None])
        offsets = -anchors if self.landscape else self.places - anchors
        drawn = (positions + offsets[:, None]).astype(np.float32)
        quaternions = quaternions.astype(np.float32)
        # Viser sends only what differs from what it sent before.
        with self.server.atomic():
            for batch in self._batches:
                batch.handle.batched_positions = drawn[: batch.copies, batch.body_id]
                batch.handle.batched_wxyzs = quaternions[: batch.copies, batch.body_id]
            if self.landscape:
                self.places = drawn[:, self._lead_body].astype(np.float64)
                for label, place in zip(self._labels, self.places, strict=True):
                    label.position = place + self._label_offset()
            self._outline.position = self.places[selected]

    def set_labels(self, texts: list[str]) -> None:
        """Write a line over each world shown."""
        with self.server.atomic():
            for label, text in zip(self._labels, texts, strict=True):
                label.text = text

    def show_labels(self, visible: bool) -> None:
        """Show or hide the lines over the worlds."""
        with self.server.atomic():
            for label in self._labels:
                label.visible = visible

    def remove(self) -> None:
        """Take everything out of the scene."""
        with self.server.atomic():
            for node in self._nodes:
                node.remove()
            self._nodes.clear()

    def _drawable_geoms(self, planes: list[int]) -> list[int]:
        model, drawable, skipped = self._model, [], []
        for geom in range(model.ngeom):
            group, material = int(model.geom_group[geom]), int(model.geom_matid[geom])
            alpha = (model.mat_rgba[material] if material >= 0 else model.geom_rgba[geom])[3]
            if geom in planes or alpha == 0 or not (group < 6 and self._cfg.geom_group[group]):
                continue
            kind = int(model.geom_type[geom])
            finite_plane = kind == _Geom.mjGEOM_PLANE and model.geom_size[geom, :2].min() > 0
            if kind in _MESHABLE or finite_plane:
                drawable.append(geom)
            else:
                skipped.append(model.geom(geom).name or f"geom {geom}")
        if skipped:
            warnings.warn(
                f"The browser view cannot draw {len(skipped)} geoms of this model "
                f"({', '.join(skipped[:5])}): planes without end that are not level, and SDFs.",
                stacklevel=3,
            )
        return drawable

    def _light(self) -> None:
        self.server.scene.configure_environment_map("studio", environment_intensity=0.8)
        self.server.scene.configure_default_lights(enabled=True, cast_shadow=True)

    def _add_ground(self, planes: list[int]) -> None:
        """One grid without end under all worlds, at the height of the lowest floor."""
        if not planes:
            return
        height = min(float(bounding_box(self._model, [plane])[0, 2]) for plane in planes)
        self._nodes.append(
            self.server.scene.add_grid(
                f"{_ROOT}/ground",
                infinite_grid=True,
                cell_size=0.5,
                section_size=1.0,
                cell_color=(214, 219, 224),
                section_color=(190, 197, 204),
                cell_thickness=0.6,
                section_thickness=1.0,
                plane_color=_GROUND,
                plane_opacity=1.0,
                shadow_opacity=0.25,
                fade_distance=8.0 * float(np.ptp(self.shown_box(), axis=0).max()) + 10.0,
                position=(0.0, 0.0, height - 0.002),
            )
        )

    def _add_meshes(self, geoms: list[int]) -> list[_Batch]:
        by_body: dict[int, list[int]] = {}
        for geom in geoms:
            by_body.setdefault(int(self._model.geom_bodyid[geom]), []).append(geom)
        batches = []
        for body_id, own in by_body.items():
            # Geoms with different textures cannot share a mesh.
            groups = self._conversions.group_geoms_by_visual_compat(self._model, own)
            for i, group in enumerate(groups):
                mesh = self._conversions.merge_geoms(self._model, group)
                batches.append(self._add_batch(f"body_{body_id}/mesh_{i}", mesh, body_id))
        return batches

    def _add_sites(self) -> list[_Batch]:
        model = self._model
        by_body: dict[int, list[int]] = {}
        for site in range(model.nsite):
            group = int(model.site_group[site])
            if group < 6 and self._cfg.site_group[group] and model.site_rgba[site, 3] > 0:
                by_body.setdefault(int(model.site_bodyid[site]), []).append(site)
        return [
            self._add_batch(
                f"body_{body_id}/sites", self._conversions.merge_sites(model, own), body_id
            )
            for body_id, own in by_body.items()
        ]

    def _add_batch(self, name: str, mesh: Any, body_id: int) -> _Batch:
        _make_colors_linear(mesh)
        static = static_body(self._model, body_id)
        copies = 1 if self.landscape and static else self.count
        handle = self.server.scene.add_batched_meshes_trimesh(
            f"{_ROOT}/{name}",
            mesh,
            batched_wxyzs=np.tile(_IDENTITY, (copies, 1)),
            batched_positions=np.zeros((copies, 3)),
            lod="off",
            cast_shadow=not (self.landscape and static),
        )
        self._nodes.append(handle)
        return _Batch(handle, body_id, copies)

    def _add_labels(self) -> list[viser.LabelHandle]:
        labels = [
            self.server.scene.add_label(
                f"{_ROOT}/label_{i}",
                "",
                position=place + self._label_offset(),
                anchor="bottom-center",
            )
            for i, place in enumerate(self.places)
        ]
        self._nodes.extend(labels)
        return labels

    def _add_outline(self) -> viser.LineSegmentsHandle:
        """A rectangle around the foot of the selected world."""
        low, high = self.box[0, :2] - 0.1, self.box[1, :2] + 0.1
        half = np.maximum((high - low) / 2, 0.3 * (high - low).max())
        center = (low + high) / 2
        corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * half + center
        points = np.column_stack([corners, np.full(4, self.box[0, 2] + 0.004)])
        outline = self.server.scene.add_line_segments(
            f"{_ROOT}/selected",
            points=np.stack([points, np.roll(points, -1, axis=0)], axis=1).astype(np.float32),
            colors=_ACCENT,
            thickness=3.0,
            thickness_units="screen",
            visible=self.count > 1 and not self.landscape,
        )
        self._nodes.append(outline)
        return outline

    def _label_offset(self) -> np.ndarray:
        center = self.box.mean(axis=0)
        return np.array([center[0], center[1], self.box[1, 2] + 0.05])


def _make_colors_linear(mesh: Any) -> None:
    """Browsers take a vertex's colour as linear light; MuJoCo's colours are meant for a screen."""
    if mesh.visual.kind == "vertex":
        colors = np.array(mesh.visual.vertex_colors)
        colors[:, :3] = (255 * (colors[:, :3] / 255.0) ** 2.2).round()
        mesh.visual.vertex_colors = colors
