"""Images of worlds, drawn without a window."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from manyworlds.utils.mujoco import pose_for_drawing
from manyworlds.utils.renderer import Renderer
from manyworlds.utils.viewer_config import ViewerConfig
from manyworlds.viewer.camera import tracked_body_id

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

_GAP_PIXELS = 2
_GAP_COLOR = (24, 26, 30)


class OffscreenRenderer:
    """Draws one world at a time from the arrays of a batch, on a model copy of its own.

    Use it from the thread that made it, as OpenGL asks.

    Args:
        model: the model that all worlds share; it is copied.
        cfg: camera, resolution and what to draw.

    Raises:
        RuntimeError: there is no OpenGL here that can draw; the message says what to install.
        ValueError: `cfg` names a body or an entity that the model does not have.
    """

    def __init__(self, model: mujoco.MjModel, cfg: ViewerConfig) -> None:
        self._renderer: Renderer | None = None
        self._cfg = copy.deepcopy(cfg)
        self._model = copy.copy(model)
        self._body_id = tracked_body_id(self._model, cfg)
        if min(cfg.width, cfg.height) < 1:
            raise ValueError(
                f"ViewerConfig: width and height must be at least 1 pixel, "
                f"got {cfg.width} x {cfg.height}."
            )
        if cfg.fovy is not None:
            self._model.vis.global_.fovy = cfg.fovy
        self._data = mujoco.MjData(self._model)
        self._option = mujoco.MjvOption()
        self._option.geomgroup[:] = cfg.geom_group
        self._option.sitegroup[:] = cfg.site_group
        self._camera = mujoco.MjvCamera()
        self._camera.distance = cfg.distance
        self._camera.azimuth = cfg.azimuth
        self._camera.elevation = cfg.elevation
        self._renderer = Renderer(self._model, cfg.height, cfg.width)

    @property
    def renderer(self) -> mujoco.Renderer:
        """MuJoCo's renderer, for what this class does not offer.

        Raises:
            RuntimeError: this renderer was closed.
        """
        if self._renderer is None:
            raise RuntimeError("This OffscreenRenderer was closed: make a new one.")
        return self._renderer

    def update(self, data: Any, env_idx: int = 0) -> None:
        """Take over the state of one world.

        Args:
            data: per-world arrays (`sim.data`); `qpos` and, where the model has mocap bodies,
                `mocap_pos` and `mocap_quat` are read.
            env_idx: the world.

        Raises:
            ValueError: there is no such world.
        """
        num_envs = data.qpos.shape[0]
        if not 0 <= env_idx < num_envs:
            raise ValueError(
                f"World {env_idx} is out of range: there are {num_envs} worlds, "
                f"so env_idx must be in [0, {num_envs})."
            )
        renderer = self.renderer
        self._data.qpos[:] = _row(data.qpos, env_idx)
        if self._model.nmocap:
            self._data.mocap_pos[:] = _row(data.mocap_pos, env_idx)
            self._data.mocap_quat[:] = _row(data.mocap_quat, env_idx)
        pose_for_drawing(self._model, self._data)
        self._camera.lookat[:] = self._data.xpos[self._body_id] + np.asarray(self._cfg.lookat)
        renderer.update_scene(self._data, self._camera, self._option)
        flags = renderer.scene.flags
        flags[mujoco.mjtRndFlag.mjRND_SHADOW] = self._cfg.enable_shadows
        flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = self._cfg.enable_reflections

    def render(self) -> np.ndarray:
        """Draw the world of the last `update`; returns uint8 RGB, shape (height, width, 3)."""
        return self.renderer.render()

    def render_grid(
        self, data: Any, env_ids: Sequence[int], columns: int | None = None
    ) -> np.ndarray:
        """Draw several worlds side by side, row by row, with a thin gap between them.

        Args:
            data: per-world arrays, as for `update`.
            env_ids: the worlds, at least one.
            columns: pictures in a row; None makes the grid about square.

        Returns:
            uint8 RGB, shape (rows * height + gaps, columns * width + gaps, 3).
        """
        if not len(env_ids):
            raise ValueError("render_grid needs at least one world, got no env_ids.")
        columns = int(np.ceil(np.sqrt(len(env_ids)))) if columns is None else columns
        if columns < 1:
            raise ValueError(f"render_grid needs at least one column, got columns={columns}.")
        columns = min(columns, len(env_ids))
        rows = -(-len(env_ids) // columns)
        step_y, step_x = self._cfg.height + _GAP_PIXELS, self._cfg.width + _GAP_PIXELS
        grid = np.empty((rows * step_y - _GAP_PIXELS, columns * step_x - _GAP_PIXELS, 3), np.uint8)
        grid[:] = _GAP_COLOR
        for i, env_idx in enumerate(env_ids):
            self.update(data, int(env_idx))
            y, x = i // columns * step_y, i % columns * step_x
            grid[y : y + self._cfg.height, x : x + self._cfg.width] = self.render()
        return grid

    def close(self) -> None:
        """Free the OpenGL context; a second call does nothing."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None


def _row(field: Any, env_idx: int) -> np.ndarray:
    return field[env_idx].detach().cpu().numpy()


def attach_renderer(env: ManagerBasedRlEnv, cfg: ViewerConfig | None = None) -> None:
    """Let `env.render()` draw the world `cfg.env_idx`.

    Args:
        env: an environment with `render_mode="rgb_array"`.
        cfg: camera, resolution and what to draw; None takes the task's.

    Raises:
        RuntimeError: there is no OpenGL here that can draw.
    """
    cfg = env.cfg.viewer if cfg is None else cfg
    renderer = OffscreenRenderer(env.sim.mj_model, cfg)

    def draw() -> np.ndarray:
        renderer.update(env.sim.data, cfg.env_idx)
        return renderer.render()

    env.renderer = draw
