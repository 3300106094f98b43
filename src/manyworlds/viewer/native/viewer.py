"""One world and its neighbors in MuJoCo's own window."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import mujoco
import numpy as np
import torch

from manyworlds.viewer import requests
from manyworlds.viewer.base import BaseViewer, EnvProtocol, PolicyProtocol, VerbosityLevel
from manyworlds.viewer.camera import tracked_body_id
from manyworlds.viewer.display import check_display, has_display
from manyworlds.viewer.native.plots import (
    PlotCfg,
    TermPlots,
    compute_viewports,
    make_empty_figure,
)
from manyworlds.viewer.native.visualizer import MujocoNativeDebugVisualizer
from manyworlds.viewer.neighbors import add_neighbor, nearest_worlds
from manyworlds.viewer.requests import ViewerRequest
from manyworlds.viewer.world_mirror import WorldMirror

if TYPE_CHECKING:
    from mujoco.viewer import Handle

__all__ = ["NativeMujocoViewer", "PlotCfg", "compute_viewports", "has_display", "make_empty_figure"]

_ENTER = 257
_SPACE = 32
_RIGHT = 262
_KEYS: dict[int, ViewerRequest] = {
    _ENTER: requests.Reset(),
    _SPACE: requests.TogglePause(),
    _RIGHT: requests.SingleStep(),
    ord("-"): requests.SpeedDown(),
    ord("="): requests.SpeedUp(),
    ord(","): requests.PreviousEnv(),
    ord("."): requests.NextEnv(),
    ord("P"): requests.TogglePlots(),
    ord("R"): requests.ToggleDebugVis(),
    ord("A"): requests.ToggleShowAllEnvs(),
}
"""Actions of keys, by the key's code."""


class NativeMujocoViewer(BaseViewer):
    """Shows the selected world in MuJoCo's window, with the nearest others around it.

    Keys: Enter resets, space pauses, the right arrow runs a single step, - and = change the
    speed, comma and period select the previous and the next world, P shows or hides plots of
    rewards, R debug shapes, A the other worlds. Double-click a body and drag it while holding Ctrl
    to push it.

    Args:
        env: the environment.
        policy: function from observations to actions.
        frame_rate: frames per second [1/s].
        key_callback: called with the code of each pressed key, after the viewer.
        plot_cfg: layout of the plots of rewards; None takes the defaults.
        enable_perturbations: whether the mouse can push bodies.
        verbosity: amount of output on the terminal.
    """

    def __init__(
        self,
        env: EnvProtocol,
        policy: PolicyProtocol,
        frame_rate: float = 60.0,
        key_callback: Callable[[int], None] | None = None,
        plot_cfg: PlotCfg | None = None,
        enable_perturbations: bool = True,
        verbosity: int = VerbosityLevel.SILENT,
    ) -> None:
        super().__init__(env, policy, frame_rate, verbosity)
        sim = self._sim
        self._world = WorldMirror(sim.mj_model, sim.model, sim.expanded_fields)
        # The window's thread reads this model and data, so neighbors need their own.
        self._neighbor = WorldMirror(sim.mj_model, sim.model, sim.expanded_fields)
        self._tracked = tracked_body_id(sim.mj_model, self.cfg)
        self._key_callback = key_callback
        self._perturb = enable_perturbations
        self._pushed = False
        self._handle: Handle | None = None
        self._option = mujoco.MjvOption()
        self._debug = True
        self._plots_shown = True
        self._all_envs = False
        rewards = getattr(env.unwrapped, "reward_manager", None)
        names: list[str] = []
        if rewards is not None:
            names = [name for name, _ in rewards.get_active_iterable_terms(0)]
        self._plot_cfg = plot_cfg or PlotCfg()
        self._plots = TermPlots(names, self._plot_cfg)

    def setup(self) -> None:
        """Open the window.

        Raises:
            RuntimeError: there is no display, or this program cannot use it.
        """
        check_display("use --viewer viser, or --video.")
        import mujoco.viewer

        self._world.load(self._sim.data, self.env_idx)
        handle = mujoco.viewer.launch_passive(
            self._world.model,
            self._world.data,
            key_callback=self._on_key,
            show_left_ui=False,
            show_right_ui=False,
        )
        self._handle = handle
        self._set_up_camera(handle)
        self.sync_env_to_viewer()

    def is_running(self) -> bool:
        """Return True if the window is open."""
        return self._handle is not None and self._handle.is_running()

    def sync_env_to_viewer(self) -> None:
        """Draw the selected world, its neighbors, debug shapes and plots."""
        handle = self._handle
        if handle is None:
            return
        with handle.lock():
            self._world.load(self._sim.data, self.env_idx)
            scene = handle.user_scn
            assert scene is not None  # only a viewer without a renderer has none
            scene.ngeom = 0
            self._draw_neighbors(scene)
            if self._debug:
                draw = getattr(self.env.unwrapped, "update_visualizers", None)
                if draw is not None:
                    model = self._world.model
                    draw(MujocoNativeDebugVisualizer(scene, model, self.env_idx, self._all_envs))
        handle.set_texts(self._texts())
        self._draw_plots(handle)
        handle.sync()

    def sync_viewer_to_env(self) -> None:
        """Apply the present force of the mouse."""
        handle = self._handle
        if handle is None or not self._perturb or self._paused:
            return
        with handle.lock():
            data = self._world.data
            pert = handle.perturb
            data.xfrc_applied[:] = 0.0
            if pert.active:
                mujoco.mjv_applyPerturbForce(self._world.model, data, pert)
            forces = torch.from_numpy(data.xfrc_applied.copy())
        pushed = bool(forces.any())
        if pushed or self._pushed:
            applied = self._sim.data.xfrc_applied
            applied[self.env_idx] = forces.to(applied)
        self._pushed = pushed

    def close(self) -> None:
        """Close the window; a second call does nothing."""
        handle = self._handle
        self._handle = None
        if handle is not None:
            handle.close()

    def reset_environment(self) -> None:
        """Reset all worlds, the policy's memory, and all plots."""
        super().reset_environment()
        self._plots.clear()

    def select_env(self, env_idx: int) -> None:
        """Select a world; ids beyond the last continue at 0."""
        if self._pushed:
            self._sim.data.xfrc_applied[self.env_idx] = 0.0
            self._pushed = False
        super().select_env(env_idx)
        self._plots.clear()

    def carry_out(self, action: ViewerRequest) -> None:
        """Carry out an action, in the thread that ticks.

        Raises:
            ValueError: this viewer has no such action.
        """
        match action:
            case requests.TogglePlots():
                self._plots_shown = not self._plots_shown
            case requests.ToggleDebugVis():
                self._debug = not self._debug
            case requests.ToggleShowAllEnvs():
                self._all_envs = not self._all_envs
            case _:
                super().carry_out(action)

    def _execute_step(self) -> bool:
        if not super()._execute_step():
            return False
        if self._plots.figures:
            terms = self.env.unwrapped.reward_manager.get_active_iterable_terms(self.env_idx)
            self._plots.update([float(np.ravel(value)[0]) for _, value in terms])
        return True

    def _on_key(self, key: int) -> None:
        """Queue a request, since this runs in the window's thread."""
        if key in _KEYS:
            self.request(_KEYS[key])
        if self._key_callback is not None:
            self._key_callback(key)

    def _set_up_camera(self, handle: Handle) -> None:
        """Point the window's camera as the configuration says."""
        cfg = self.cfg
        camera = handle.cam
        with handle.lock():
            camera.distance = cfg.distance
            camera.azimuth = cfg.azimuth
            camera.elevation = cfg.elevation
            camera.lookat[:] = cfg.lookat
            if self._tracked:
                camera.type = mujoco.mjtCamera.mjCAMERA_TRACKING
                camera.trackbodyid = self._tracked
            handle.opt.geomgroup[:] = cfg.geom_group
            handle.opt.sitegroup[:] = cfg.site_group
            if cfg.fovy is not None:
                self._world.model.vis.global_.fovy = cfg.fovy

    def _draw_neighbors(self, scene: mujoco.MjvScene) -> None:
        """Draw other worlds around the selected one."""
        origins = getattr(getattr(self.env.unwrapped, "scene", None), "env_origins", None)
        if origins is None:
            return
        count = self.cfg.max_extra_envs
        if self._all_envs:
            count = self.env.num_envs
        self._option.geomgroup[:] = self.cfg.geom_group
        self._option.sitegroup[:] = 0
        for world, way in nearest_worlds(origins, self.env_idx, count):
            if scene.ngeom + self._world.model.ngeom > scene.maxgeom:
                break
            self._neighbor.load(self._sim.data, world)
            add_neighbor(self._neighbor, self._option, scene, way, self._world.data.xpos)

    def _draw_plots(self, handle: Handle) -> None:
        """Draw the plots of reward terms, or none."""
        viewport = handle.viewport
        if not self._plots_shown or viewport is None or not self._plots.figures:
            handle.clear_figures()
            return
        places = compute_viewports(len(self._plots.figures), viewport, self._plot_cfg)
        handle.set_figures(list(zip(places, self._plots.figures, strict=False)))

    def _texts(self) -> tuple[int, int, str, str]:
        """Return the status as the window shows it: font, place, names and values."""
        status = self.get_status()
        speed = status.speed_label
        if status.paused:
            speed = "paused"
        rows = {
            "World": f"{self.env_idx} of {self.env.num_envs}",
            "Step": f"{status.step_count}",
            "Speed": speed,
            "Real time": f"{status.actual_realtime:.2f}x",
        }
        if status.last_error:
            rows["Error"] = status.last_error[:80]
        font = mujoco.mjtFontScale.mjFONTSCALE_150
        place = mujoco.mjtGridPos.mjGRID_TOPLEFT
        return int(font), int(place), "\n".join(rows), "\n".join(rows.values())
