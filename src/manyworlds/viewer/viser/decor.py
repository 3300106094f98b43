"""MuJoCo's own overlays and debug shapes, as batched handles of a viser scene."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from manyworlds.viewer.drawn_world import DrawnWorld
from manyworlds.viewer.native.visualizer import MujocoNativeDebugVisualizer
from manyworlds.viewer.viser.shapes import Instances, Shape, ShapeLayer, merge_instances, pieces

if TYPE_CHECKING:
    import viser

_MAX_GEOMS = 4000
_MAX_LABELS = 64
_HULL_OPACITY = 0.5
_Flag = mujoco.mjtVisFlag
_DYNAMIC_FLAGS = (_Flag.mjVIS_CONTACTPOINT, _Flag.mjVIS_CONTACTFORCE, _Flag.mjVIS_CONSTRAINT)
_TENDON = mujoco.mjtObj.mjOBJ_TENDON


class ViserDebugVisualizer(MujocoNativeDebugVisualizer):
    """Draws debug shapes of a world where the page draws that world."""

    def __init__(self, mj_model: mujoco.MjModel) -> None:
        super().__init__(mujoco.MjvScene(mj_model, _MAX_GEOMS), mj_model, env_idx=0)
        self.shown = range(0)
        """The worlds on the page."""
        self.offsets = np.zeros((0, 3))
        """How far each of them is moved for drawing [m], shape (len(shown), 3)."""

    def select(self, env_idx: int) -> None:
        """Draw what belongs to a world from here on."""
        self.offset = self.offsets[env_idx - self.shown.start]

    def get_env_indices(self, num_envs: int) -> Iterable[int]:
        """The worlds that are shown: draw what belongs to each while it is the current one."""
        for world in self.shown if self.show_all_envs else (self.env_idx,):
            self.select(world)
            yield world
        self.select(self.env_idx)


class DecorLayer:
    """Draws what MuJoCo's own viewer offers over the selected world, and debug shapes.

    Args:
        server: where to draw.
        model: the model that all worlds share.
        sim_model: `sim.model`, for what differs between worlds.
        expanded_fields: `sim.expanded_fields`, what differs between worlds.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        model: mujoco.MjModel,
        sim_model: Any = None,
        expanded_fields: Set[str] | None = None,
    ) -> None:
        self.option = mujoco.MjvOption()
        """Flags and frames of MuJoCo's visualizer; none is set at first."""
        self.option.flags[:] = 0
        # What collides is often in a group that is not drawn.
        self.option.geomgroup[:] = 1
        self.debug = ViserDebugVisualizer(model)
        self._server = server
        self._world = DrawnWorld(model, sim_model, expanded_fields)
        # MuJoCo's decoration is made for larger pictures than a page's.
        self._world.model.vis.scale.framewidth *= 0.3
        self._world.model.vis.scale.contactwidth *= 0.5
        self._world.model.vis.scale.forcewidth *= 0.5
        self._scene = mujoco.MjvScene(model, max(_MAX_GEOMS, 2 * model.ngeom))
        self._camera = mujoco.MjvCamera()
        self._layer = ShapeLayer(server, "/decor", model)
        self._labels: list[viser.LabelHandle] = []
        self._shown = False

    @property
    def enabled(self) -> bool:
        """Whether any overlay of MuJoCo's is asked for."""
        return bool(self.option.flags.any()) or self.option.frame != mujoco.mjtFrame.mjFRAME_NONE

    def show(self, data: Any, env_idx: int, offset: np.ndarray) -> None:
        """Draw overlays of a world and the shapes that `debug` holds.

        Args:
            data: per-world arrays (`sim.data`).
            env_idx: the world.
            offset: how far it is moved for drawing [m], shape (3,).
        """
        if not (self.enabled or self.debug.scn.ngeom or self._shown):
            return
        parts: list[tuple[Shape, Instances]] = []
        if self.enabled:
            dynamics = any(self.option.flags[flag] for flag in _DYNAMIC_FLAGS)
            self._world.load(data, env_idx, dynamics=dynamics)
            model, everything = self._world.model, int(mujoco.mjtCatBit.mjCAT_ALL)
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
        """Take everything out of the scene."""
        self._layer.remove()
        for label in self._labels:
            label.remove()
        self._labels.clear()

    def _show_labels(self, texts: list[tuple[str, np.ndarray]]) -> None:
        while len(self._labels) < len(texts):
            name = f"/decor/label_{len(self._labels)}"
            self._labels.append(self._server.scene.add_label(name, ""))
        for label, (text, position) in zip(self._labels, texts, strict=False):
            label.text, label.position = text, position
        for i, label in enumerate(self._labels):
            label.visible = i < len(texts)


def _instances(scene: mujoco.MjvScene, offset: np.ndarray) -> list[tuple[Shape, Instances]]:
    """The decoration among a scene's geoms, and convex hulls, taken apart into shapes."""
    groups: dict[tuple[int, int, bool], list[tuple[np.ndarray, ...]]] = {}
    quaternion = np.empty(4)
    for geom in scene.geoms[: scene.ngeom]:
        decor = geom.category == mujoco.mjtCatBit.mjCAT_DECOR or geom.objtype == _TENDON
        is_mesh = geom.type == mujoco.mjtGeom.mjGEOM_MESH
        # Numbers of meshes and of their convex hulls take turns.
        is_hull = is_mesh and geom.dataid % 2 == 1
        if not (decor or is_hull) or geom.rgba[3] == 0:
            continue
        mujoco.mju_mat2Quat(quaternion, np.asarray(geom.mat, np.float64).ravel())
        key = int(geom.type), int(geom.dataid) // 2 if is_mesh else -1, is_hull
        rgba = np.array(geom.rgba) * ((1, 1, 1, _HULL_OPACITY) if is_hull else 1)
        row = (geom.pos + offset, quaternion.copy(), np.array(geom.size), rgba)
        groups.setdefault(key, []).append(row)
    parts = []
    for (kind, mesh_id, is_hull), rows in groups.items():
        pos, quat, size, rgba = (np.array(column, np.float64) for column in zip(*rows, strict=True))
        turned = np.empty((len(quat), 9))
        for i, one in enumerate(quat):
            mujoco.mju_quat2Mat(turned[i], one)
        axis = turned.reshape(-1, 3, 3)[:, :, 2]
        for shape, along, scale in pieces(kind, mesh_id, size):
            worlds = np.zeros(len(pos), int)
            shape = ("hull", mesh_id) if is_hull else shape
            parts.append((shape, Instances(pos + along[:, None] * axis, quat, scale, rgba, worlds)))
    return parts
