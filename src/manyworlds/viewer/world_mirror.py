"""One world of a batch as MuJoCo's own structs, for drawing."""

from __future__ import annotations

import copy
from collections.abc import Set
from typing import Protocol

import mujoco
import numpy as np

from manyworlds.utils.drawing import draw_for_robots, pose_for_drawing
from manyworlds.utils.newton import avoid_sparse_newton
from manyworlds.viewer.model_sync import (
    VIEWER_INERTIAL_FIELDS,
    VIEWER_MODEL_FIELDS,
    DataArrays,
    ModelArrays,
    as_numpy,
    disable_model_sameframe_shortcuts,
    sync_model_fields,
)


class WorldState(Protocol):
    """State of one world."""

    @property
    def qpos(self) -> np.ndarray:
        """Generalized positions, shape (nq,)."""
        ...

    @property
    def mocap_pos(self) -> np.ndarray:
        """Positions of mocap bodies [m], shape (nmocap, 3)."""
        ...

    @property
    def mocap_quat(self) -> np.ndarray:
        """Orientations of mocap bodies (wxyz), shape (nmocap, 4)."""
        ...


class WorldMirror:
    """Copy of the model and the state of one world at a time; the simulation is only read.

    Args:
        model: model that all worlds share.
        sim_model: `sim.model`, for fields that differ between worlds; None if none does.
        expanded_fields: names of the fields that differ.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        sim_model: ModelArrays | None = None,
        expanded_fields: Set[str] | None = None,
    ) -> None:
        self.model = copy.copy(model)
        avoid_sparse_newton(self.model)
        draw_for_robots(self.model)
        self.data = mujoco.MjData(self.model)
        self._sim_model = sim_model
        self._all: set[str] = set()
        if sim_model is not None:
            self._all = {n for n in expanded_fields or () if not n.startswith("opt.")}
        self._drawn = self._all & (VIEWER_MODEL_FIELDS | VIEWER_INERTIAL_FIELDS)
        if self._drawn:
            disable_model_sameframe_shortcuts(self.model)

    def load(self, data: DataArrays, env_idx: int, *, dynamics: bool = False) -> None:
        """Copy the state of a world.

        Args:
            data: per-world arrays (`sim.data`).
            env_idx: index of the world.
            dynamics: also compute contacts and forces.

        Raises:
            ValueError: there is no such world.
        """
        num_envs = data.qpos.shape[0]
        if not 0 <= env_idx < num_envs:
            raise ValueError(
                f"World {env_idx} is out of range: there are {num_envs} worlds, "
                f"so env_idx must be in [0, {num_envs})."
            )
        fields = self._drawn
        names = ["qpos"]
        if dynamics:
            fields = self._all
            names += ["qvel", "act", "ctrl"]
        if self._sim_model is not None and fields:
            sync_model_fields(self.model, self._sim_model, fields, env_idx)
        if self.model.nmocap:
            names += ["mocap_pos", "mocap_quat"]
        for name in names:
            row = getattr(self.data, name)
            if row.size:
                row[:] = as_numpy(getattr(data, name)[env_idx])
        if dynamics:
            mujoco.mj_forward(self.model, self.data)
        else:
            pose_for_drawing(self.model, self.data)

    def pose(self, state: WorldState) -> None:
        """Copy the pose of a world of its own, without model fields.

        Args:
            state: its fields, in the shapes of `mujoco.MjData`.
        """
        self.data.qpos[:] = state.qpos
        self.data.mocap_pos[:] = state.mocap_pos
        self.data.mocap_quat[:] = state.mocap_quat
        pose_for_drawing(self.model, self.data)
