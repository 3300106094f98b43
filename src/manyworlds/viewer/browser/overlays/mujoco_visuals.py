"""Overlays that MuJoCo computes itself, and debug shapes, as batched handles of a scene."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.viewer.browser.shapes import Instances, Shape, ShapeLayer, merge_instances, pieces
from manyworlds.viewer.native.visualizer import MujocoNativeDebugVisualizer

if TYPE_CHECKING:
    import viser

    from manyworlds.viewer.world_mirror import WorldMirror

_MAX_GEOMS = 4000
_MAX_LABELS = 64


class ViserDebugVisualizer(MujocoNativeDebugVisualizer):
    """Draws debug shapes of a world at the place of that world on the page."""

    def __init__(self, mj_model: mujoco.MjModel) -> None:
        super().__init__(mujoco.MjvScene(mj_model, _MAX_GEOMS), mj_model, env_idx=0)
        self.shown = range(0)
        """Indices of the worlds in the scene."""
        self.offsets = np.zeros((0, 3))
        """Displacement of each of these worlds in the drawing [m], shape (len(shown), 3)."""

    def select(self, env_idx: int) -> None:
        """Draw shapes of a world from now on."""
        self.offset = self.offsets[env_idx - self.shown.start]

    def get_env_indices(self, num_envs: int) -> Iterable[int]:
        """Yield the worlds that are shown; each is the selected one until the next."""
        worlds = [self.env_idx]
        if self.show_all_envs:
            worlds = list(self.shown)
        for world in worlds:
            self.select(world)
            yield world
        self.select(self.env_idx)


class MujocoOverlays:
    """Overlays of MuJoCo's visualizer over one world, and debug shapes.

    Args:
        server: server of the page.
        world: the world; its model is changed so that MuJoCo's symbols are small enough for a page.
        path: name of the shapes in the scene.
    """

    def __init__(
        self, server: viser.ViserServer, world: WorldMirror, path: str = "/mujoco_overlays"
    ) -> None:
        self.option = mujoco.MjvOption()
        """Flags and frames of MuJoCo's visualizer; all are off at first."""
        self.option.flags[:] = 0
        # Inertias and actuators are drawn for geoms of all groups, shown or not.
        self.option.geomgroup[:] = 1
        self.debug = ViserDebugVisualizer(world.model)
        self._server = server
        self._world = world
        world.model.vis.scale.framewidth *= 0.3
        self._scene = mujoco.MjvScene(world.model, max(_MAX_GEOMS, 2 * world.model.ngeom))
        self._camera = mujoco.MjvCamera()
        self._path = path
        self._layer = ShapeLayer(server, path, world.model)
        self._labels: list[viser.LabelHandle] = []
        self._shown = False

    @property
    def enabled(self) -> bool:
        """True if any of MuJoCo's overlays is on."""
        return bool(self.option.flags.any()) or self.option.frame != mujoco.mjtFrame.mjFRAME_NONE

    def show(self, offset: np.ndarray) -> None:
        """Draw overlays of the world, and the shapes in `debug`.

        Args:
            offset: displacement of the world in the drawing [m], shape (3,).
        """
        if not (self.enabled or self.debug.scn.ngeom or self._shown):
            return
        parts: list[tuple[Shape, Instances]] = []
        if self.enabled:
            model = self._world.model
            if self.option.flags[mujoco.mjtVisFlag.mjVIS_RANGEFINDER]:
                mujoco.mj_sensorPos(model, self._world.data)  # rays are as long as they measure
            everything = int(mujoco.mjtCatBit.mjCAT_ALL)
            mujoco.mjv_updateScene(
                model, self._world.data, self.option, None, self._camera, everything, self._scene
            )
            parts += _instances(self._scene, offset)
        parts += _instances(self.debug.scn, np.zeros(3))
        shapes = self.debug.scn.geoms[: self.debug.scn.ngeom]
        texts = [(geom.label, np.array(geom.pos)) for geom in shapes if geom.label]
        self._layer.show(merge_instances(parts))
        self._show_labels(texts[:_MAX_LABELS])
        self._shown = bool(parts)

    def remove(self) -> None:
        """Remove everything from the scene."""
        self._layer.remove()
        for label in self._labels:
            label.remove()
        self._labels.clear()

    def _show_labels(self, texts: list[tuple[str, np.ndarray]]) -> None:
        """Show texts at positions; labels that are not needed are hidden."""
        while len(self._labels) < len(texts):
            name = f"{self._path}/label_{len(self._labels)}"
            self._labels.append(self._server.scene.add_label(name, ""))
        for label, (text, position) in zip(self._labels, texts, strict=False):
            label.text = text
            label.position = position
        for i, label in enumerate(self._labels):
            label.visible = i < len(texts)


def _instances(scene: mujoco.MjvScene, offset: np.ndarray) -> list[tuple[Shape, Instances]]:
    """Return MuJoCo's symbols among a scene's geoms, as shapes."""
    groups: dict[tuple[int, int], list[tuple[np.ndarray, ...]]] = {}
    quaternion = np.empty(4)
    for geom in scene.geoms[: scene.ngeom]:
        if geom.category != mujoco.mjtCatBit.mjCAT_DECOR or geom.rgba[3] == 0:
            continue
        mujoco.mju_mat2Quat(quaternion, np.asarray(geom.mat, np.float64).ravel())
        mesh = -1
        if geom.type == mujoco.mjtGeom.mjGEOM_MESH:
            # Indices of meshes alternate with those of their convex hulls.
            mesh = int(geom.dataid) // 2
        key = int(geom.type), mesh
        row = (geom.pos + offset, quaternion.copy(), np.array(geom.size), np.array(geom.rgba))
        groups.setdefault(key, []).append(row)
    parts = []
    for (kind, mesh_id), rows in groups.items():
        pos, quat, size, rgba = (np.array(column, np.float64) for column in zip(*rows, strict=True))
        matrices = np.empty((len(quat), 9))
        for i, one in enumerate(quat):
            mujoco.mju_quat2Mat(matrices[i], one)
        axis = matrices.reshape(-1, 3, 3)[:, :, 2]
        for shape, along, scale in pieces(kind, mesh_id, size):
            worlds = np.zeros(len(pos), int)
            parts.append((shape, Instances(pos + along[:, None] * axis, quat, scale, rgba, worlds)))
    return parts
