"""Images of worlds, drawn without a window."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.utils.renderer import Renderer
from manyworlds.utils.viewer_config import ViewerConfig
from manyworlds.viewer.camera import tracked_body_id
from manyworlds.viewer.native.visualizer import MujocoNativeDebugVisualizer
from manyworlds.viewer.neighbors import add_neighbor, nearest_worlds
from manyworlds.viewer.world_mirror import WorldMirror

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.scene import Scene
    from manyworlds.viewer.model_sync import DataArrays, ModelArrays

_GAP_PIXELS = 2
_GAP_COLOR = (24, 26, 30)


class OffscreenRenderer:
    """Draws one world at a time from the arrays of a batch, on its own copy of the model.

    OpenGL requires that it is used in the thread that created it.

    Args:
        model: model that all worlds share; it is copied.
        cfg: camera, resolution, and elements to draw.
        scene: scene with the origins of the worlds, to draw the nearest `cfg.max_extra_envs` of
            them, too; None draws one world only.
        sim_model: `sim.model`, for fields that differ between worlds.
        expanded_fields: `sim.expanded_fields`, the fields that differ.

    Raises:
        RuntimeError: there is no working OpenGL; the message names the package to install.
        ValueError: `cfg` names a body or an entity that the model does not have.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        cfg: ViewerConfig,
        scene: Scene | None = None,
        sim_model: ModelArrays | None = None,
        expanded_fields: set[str] | None = None,
    ) -> None:
        self._renderer: Renderer | None = None
        self._cfg = copy.deepcopy(cfg)
        self._scene = scene
        self._world = WorldMirror(model, sim_model, expanded_fields)
        self._body_id = tracked_body_id(model, cfg)
        if min(cfg.width, cfg.height) < 1:
            raise ValueError(
                f"ViewerConfig: width and height must be at least 1 pixel, "
                f"got {cfg.width} x {cfg.height}."
            )
        if cfg.fovy is not None:
            self._world.model.vis.global_.fovy = cfg.fovy
        self._option = mujoco.MjvOption()
        self._option.geomgroup[:] = cfg.geom_group
        self._option.sitegroup[:] = cfg.site_group
        self._camera = mujoco.MjvCamera()
        self._camera.distance = cfg.distance
        self._camera.azimuth = cfg.azimuth
        self._camera.elevation = cfg.elevation
        self.initialize()

    def initialize(self) -> None:
        """Create the OpenGL context, also again after `close`; a second call does nothing.

        Raises:
            RuntimeError: there is no working OpenGL.
        """
        if self._renderer is None:
            self._renderer = Renderer(self._world.model, self._cfg.height, self._cfg.width)

    @property
    def renderer(self) -> mujoco.Renderer:
        """MuJoCo's renderer, for functions that this class does not have.

        Raises:
            RuntimeError: this renderer was closed.
        """
        if self._renderer is None:
            raise RuntimeError("This OffscreenRenderer was closed: create a new one.")
        return self._renderer

    def update(
        self,
        data: DataArrays,
        debug_vis_callback: Callable[[MujocoNativeDebugVisualizer], None] | None = None,
        camera: int | str | None = None,
        *,
        env_idx: int | None = None,
    ) -> None:
        """Set the state of one world.

        Args:
            data: per-world arrays (`sim.data`); `qpos` and, where the model has mocap bodies,
                `mocap_pos` and `mocap_quat` are read.
            debug_vis_callback: function that draws over the world, such as
                `env.update_visualizers`.
            camera: camera of the model, by name or id; None takes the one of `cfg`.
            env_idx: index of the world; None takes the one of `cfg`.

        Raises:
            ValueError: there is no such world, or no such camera.
        """
        renderer = self.renderer
        world = self._world
        if env_idx is None:
            env_idx = self._cfg.env_idx
        world.load(data, env_idx)
        self._camera.lookat[:] = world.data.xpos[self._body_id] + np.asarray(self._cfg.lookat)
        view: int | str | mujoco.MjvCamera = self._camera
        if camera is not None:
            view = camera
        renderer.update_scene(world.data, view, self._option)
        flags = renderer.scene.flags
        flags[mujoco.mjtRndFlag.mjRND_SHADOW] = self._cfg.enable_shadows
        flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = self._cfg.enable_reflections
        if self._scene is not None:
            count = self._cfg.max_extra_envs
            home = world.data.xpos.copy()
            for neighbor, way in nearest_worlds(self._scene.env_origins, env_idx, count):
                world.load(data, neighbor)
                add_neighbor(world, self._option, renderer.scene, way, home)
        if debug_vis_callback is not None:
            debug_vis_callback(MujocoNativeDebugVisualizer(renderer.scene, world.model, env_idx))

    def render(self) -> np.ndarray:
        """Draw the world of the last `update`; return uint8 RGB, shape (height, width, 3)."""
        return self.renderer.render()

    def render_grid(
        self,
        data: DataArrays,
        env_ids: Sequence[int],
        columns: int | None = None,
        debug_vis_callback: Callable[[MujocoNativeDebugVisualizer], None] | None = None,
    ) -> np.ndarray:
        """Draw several worlds side by side, row by row, with a thin gap between them.

        Args:
            data: per-world arrays, as for `update`.
            env_ids: the worlds, at least one.
            columns: images per row; None makes the grid about square.
            debug_vis_callback: function that draws over each world, such as
                `env.update_visualizers`.

        Returns:
            uint8 RGB, shape (rows * height + gaps, columns * width + gaps, 3).
        """
        if not len(env_ids):
            raise ValueError("render_grid needs at least one world, got no env_ids.")
        if columns is None:
            columns = math.ceil(math.sqrt(len(env_ids)))
        if columns < 1:
            raise ValueError(f"render_grid needs at least one column, got columns={columns}.")
        columns = min(columns, len(env_ids))
        rows = -(-len(env_ids) // columns)
        step_y = self._cfg.height + _GAP_PIXELS
        step_x = self._cfg.width + _GAP_PIXELS
        grid = np.empty((rows * step_y - _GAP_PIXELS, columns * step_x - _GAP_PIXELS, 3), np.uint8)
        grid[:] = _GAP_COLOR
        for i, env_idx in enumerate(env_ids):
            self.update(data, debug_vis_callback, env_idx=int(env_idx))
            y = i // columns * step_y
            x = i % columns * step_x
            grid[y : y + self._cfg.height, x : x + self._cfg.width] = self.render()
        return grid

    def close(self) -> None:
        """Free the OpenGL context; a second call does nothing."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None


def attach_renderer(
    env: ManagerBasedRlEnv, cfg: ViewerConfig | None = None, camera: int | str | None = None
) -> None:
    """Make `env.render()` draw the world `cfg.env_idx` and its neighbors.

    The first call of `env.render()` does this with the task's config; call it for another camera or
    resolution.

    Args:
        env: environment with `render_mode="rgb_array"`.
        cfg: camera, resolution, and elements to draw; None takes the task's.
        camera: camera of the model, by name or id, in place of that of `cfg`.

    Raises:
        RuntimeError: there is no working OpenGL.
    """
    if cfg is None:
        cfg = env.cfg.viewer
    sim = env.sim
    renderer = OffscreenRenderer(sim.mj_model, cfg, env.scene, sim.model, sim.expanded_fields)

    def draw() -> np.ndarray:
        renderer.update(sim.data, env.update_visualizers, camera)
        return renderer.render()

    env.renderer = draw
