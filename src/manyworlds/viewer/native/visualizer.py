"""Shapes drawn over a world as geoms of an `MjvScene`."""

from __future__ import annotations

import mujoco
import numpy as np

from manyworlds.utils.debug_visualizer import Color, DebugVisualizer

_Geom = mujoco.mjtGeom


class MujocoNativeDebugVisualizer(DebugVisualizer):
    """Appends geoms to a scene up to its capacity.

    Args:
        scn: the scene.
        mj_model: model whose meshes the scene's renderer has.
        env_idx: index of the world that is shown.
        show_all_envs: whether all worlds are shown.
    """

    def __init__(
        self,
        scn: mujoco.MjvScene,
        mj_model: mujoco.MjModel,
        env_idx: int,
        show_all_envs: bool = False,
    ) -> None:
        self.env_idx = env_idx
        self.show_all_envs = show_all_envs
        self.scn = scn
        self.mj_model = mj_model
        self.offset = np.zeros(3)
        """Position in the scene of the world's origin [m], shape (3,)."""
        self._first = scn.ngeom
        self._ghosts: dict[int, tuple[mujoco.MjModel, mujoco.MjData]] = {}
        self._option = mujoco.MjvOption()
        self._option.sitegroup[:] = 0

    @property
    def meansize(self) -> float:
        """Mean size of the model's bodies [m]."""
        return self.mj_model.stat.meansize

    def add_arrow(
        self,
        start: np.ndarray,
        end: np.ndarray,
        color: Color,
        width: float = 0.015,
        label: str | None = None,
    ) -> None:
        """Draw an arrow."""
        self._connect(_Geom.mjGEOM_ARROW, start, end, width, color, label)

    def add_cylinder(
        self,
        start: np.ndarray,
        end: np.ndarray,
        radius: float,
        color: Color,
        label: str | None = None,
    ) -> None:
        """Draw a cylinder."""
        self._connect(_Geom.mjGEOM_CYLINDER, start, end, radius, color, label)

    def add_sphere(
        self, center: np.ndarray, radius: float, color: Color, label: str | None = None
    ) -> None:
        """Draw a sphere."""
        self._add(_Geom.mjGEOM_SPHERE, center, np.full(3, radius), np.eye(3), color, label)

    def add_ellipsoid(
        self,
        center: np.ndarray,
        size: np.ndarray,
        mat: np.ndarray,
        color: Color,
        label: str | None = None,
    ) -> None:
        """Draw an ellipsoid from its half axes and its rotation matrix."""
        self._add(_Geom.mjGEOM_ELLIPSOID, center, size, mat, color, label)

    def add_box(
        self,
        center: np.ndarray,
        size: np.ndarray,
        mat: np.ndarray,
        color: Color,
        label: str | None = None,
    ) -> None:
        """Draw a box from its half sizes and its rotation matrix."""
        self._add(_Geom.mjGEOM_BOX, center, size, mat, color, label)

    def add_ghost_mesh(
        self,
        qpos: np.ndarray,
        model: mujoco.MjModel,
        mocap_pos: np.ndarray | None = None,
        mocap_quat: np.ndarray | None = None,
        alpha: float = 0.5,
        label: str | None = None,
    ) -> None:
        """Draw the moving geoms of a model with the scene's meshes at another state."""
        # The model is kept alive, so that its id is not reused for another one.
        _, data = self._ghosts.setdefault(id(model), (model, mujoco.MjData(model)))
        data.qpos[:] = _array(qpos)
        if mocap_pos is not None:
            data.mocap_pos[:] = _array(mocap_pos)
        if mocap_quat is not None:
            data.mocap_quat[:] = _array(mocap_quat)
        mujoco.mj_kinematics(model, data)
        first = self.scn.ngeom
        kind = mujoco.mjtCatBit.mjCAT_DYNAMIC
        mujoco.mjv_addGeoms(model, data, self._option, mujoco.MjvPerturb(), kind, self.scn)
        for i in range(first, self.scn.ngeom):
            geom = self.scn.geoms[i]
            geom.rgba[3] *= alpha
            geom.transparent = 1
            geom.category = mujoco.mjtCatBit.mjCAT_DECOR
            geom.pos[:] += self.offset
            if label and i == first:
                geom.label = label

    def clear(self) -> None:
        """Remove the shapes that were drawn since this object was created."""
        self.scn.ngeom = self._first

    def _connect(
        self,
        kind: mujoco.mjtGeom,
        start: np.ndarray,
        end: np.ndarray,
        width: float,
        color: Color,
        label: str | None,
    ) -> None:
        """Draw a shape from one point to another."""
        start = _array(start)
        end = _array(end)
        if np.array_equal(start, end):
            return
        geom = self._add(kind, start, np.ones(3), np.eye(3), color, label)
        if geom is not None:
            mujoco.mjv_connector(geom, kind, width, start + self.offset, end + self.offset)

    def _add(
        self,
        kind: mujoco.mjtGeom,
        center: np.ndarray,
        size: np.ndarray,
        mat: np.ndarray,
        color: Color,
        label: str | None,
    ) -> mujoco.MjvGeom | None:
        """Add a shape; return None if the scene is full."""
        if self.scn.ngeom >= self.scn.maxgeom:
            return None
        geom = self.scn.geoms[self.scn.ngeom]
        rgba = np.asarray(color, np.float32)
        pos = _array(center) + self.offset
        mujoco.mjv_initGeom(geom, kind, _array(size), pos, _array(mat).ravel(), rgba)
        geom.category = mujoco.mjtCatBit.mjCAT_DECOR
        geom.label = label or ""
        self.scn.ngeom += 1
        return geom


def _array(value: object) -> np.ndarray:
    """Convert numbers of NumPy or torch to an array for MuJoCo."""
    cpu = getattr(value, "cpu", None)
    if cpu is not None:
        value = cpu()
    return np.asarray(value, np.float64)
