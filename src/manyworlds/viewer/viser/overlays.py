"""What a page shows beside the worlds' bodies: terms, cameras, debug shapes, contacts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from manyworlds.viewer.viser.camera_viewer import ViserCameraViewer
from manyworlds.viewer.viser.reward_bar_panel import RewardBarPanel
from manyworlds.viewer.viser.term_plotter import ViserTermPlotter

if TYPE_CHECKING:
    import viser

    from manyworlds.viewer.viser.decor import DecorLayer

_CHART: Any = "chart-bar"
_METRICS: Any = "chart-line"
_CONTACT = (mujoco.mjtVisFlag.mjVIS_CONTACTPOINT, mujoco.mjtVisFlag.mjVIS_CONTACTFORCE)


@dataclass
class ViserTermOverlays:
    """Reward bars, and plots of rewards and metrics, of the selected world."""

    server: viser.ViserServer
    env: Any
    scene: Any
    """Knows the selected world, `env_idx`."""
    frame_time: float
    """Time between two updates [s]."""
    reward_bar_max_terms: int = 20
    reward_plotter: ViserTermPlotter | None = None
    reward_bar_panel: RewardBarPanel | None = None
    metrics_plotter: ViserTermPlotter | None = None

    def setup_tabs(self, tabs: Any) -> None:
        """Add a tab for rewards and one for metrics, where there are any."""
        if names := _names(self._manager("reward_manager")):
            with tabs.add_tab("Rewards", icon=_CHART):
                self.reward_bar_panel = RewardBarPanel(
                    self.server, names, self.frame_time, self.reward_bar_max_terms
                )
                self.reward_plotter = ViserTermPlotter(self.server, names, "Reward")
        if names := _names(self._manager("metrics_manager")):
            with tabs.add_tab("Metrics", icon=_METRICS):
                self.metrics_plotter = ViserTermPlotter(self.server, names, "Metric")

    def on_env_switch(self) -> None:
        """Begin anew with another world."""
        self.clear_histories()
        for plotter in (self.reward_plotter, self.metrics_plotter):
            if plotter is not None:
                plotter.update_env_idx(self.scene.env_idx)

    def update(self, paused: bool) -> None:
        """Take in the terms of the last step, unless nothing goes on."""
        if paused:
            return
        if self.reward_bar_panel is not None and self.reward_plotter is not None:
            terms = self._terms("reward_manager")
            self.reward_bar_panel.update(terms)
            self.reward_plotter.update(terms)
        if self.metrics_plotter is not None:
            self.metrics_plotter.update(self._terms("metrics_manager"))

    def clear_histories(self) -> None:
        """Forget what was taken in."""
        for part in (self.reward_bar_panel, self.reward_plotter, self.metrics_plotter):
            if part is not None:
                part.clear_histories()

    def cleanup(self) -> None:
        """Take bars and plots away."""
        for part in (self.reward_bar_panel, self.reward_plotter, self.metrics_plotter):
            if part is not None:
                part.cleanup()
        self.reward_bar_panel = self.reward_plotter = self.metrics_plotter = None

    def _manager(self, name: str) -> Any:
        return getattr(self.env.unwrapped, name, None)

    def _terms(self, manager: str) -> list[tuple[str, np.ndarray]]:
        terms = self._manager(manager).get_active_iterable_terms(self.scene.env_idx)
        return [(name, np.asarray(value)) for name, value in terms]


@dataclass
class ViserCameraOverlays:
    """Feeds of the cameras that are sensors."""

    server: viser.ViserServer
    env: Any
    mj_model: mujoco.MjModel
    camera_viewers: list[ViserCameraViewer] | None = None
    _enabled: Any = field(default=None, repr=False)

    @property
    def has_cameras(self) -> bool:
        """Whether the scene has a camera sensor."""
        return bool(self._sensors())

    def setup_controls(self) -> None:
        """Add the pictures to the present GUI container; they cost time, so they start off."""
        self._enabled = self.server.gui.add_checkbox("Show cameras", False)
        self.camera_viewers = [
            ViserCameraViewer(self.server, sensor, self.mj_model) for sensor in self._sensors()
        ]

    def update(self, sim_data: Any, env_idx: int, scene_offset: Any) -> None:
        """Show the pictures of a world, if asked for."""
        if self._enabled is None or not self._enabled.value:
            return
        for viewer in self.camera_viewers or []:
            viewer.update(sim_data, env_idx, scene_offset)

    def cleanup(self) -> None:
        """Take the pictures away."""
        for viewer in self.camera_viewers or []:
            viewer.cleanup()
        if self._enabled is not None:
            self._enabled.remove()
        self.camera_viewers, self._enabled = None, None

    def _sensors(self) -> list[Any]:
        from manyworlds.sensor.camera_sensor import CameraSensor

        scene = getattr(self.env.unwrapped, "scene", None)
        sensors = getattr(scene, "sensors", {})
        return [sensor for sensor in sensors.values() if isinstance(sensor, CameraSensor)]


@dataclass
class ViserDebugOverlays:
    """What managers and sensors draw of themselves."""

    env: Any
    scene: DecorLayer
    enabled: bool = True

    def on_env_switch(self) -> None:
        """Take away what belongs to another world."""
        self.scene.debug.clear()

    def queue(self) -> None:
        """Let terms draw, for the next picture."""
        self.scene.debug.clear()
        draw = getattr(self.env.unwrapped, "update_visualizers", None)
        if self.enabled and draw is not None:
            self.scene.debug.select(self.scene.debug.env_idx)
            draw(self.scene.debug)


@dataclass
class ViserContactOverlays:
    """Contacts of the selected world."""

    scene: DecorLayer

    def is_enabled(self) -> bool:
        """Whether contact points or forces are drawn."""
        return any(self.scene.option.flags[flag] for flag in _CONTACT)

    def on_env_switch(self) -> None:
        """Nothing stays of another world: contacts are drawn anew for each picture."""


def _names(manager: Any) -> list[str]:
    return [name for name, _ in manager.get_active_iterable_terms(0)] if manager else []
