"""Overlays and term panels of the play page: terms, cameras, debug shapes, contacts, joints."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import mujoco
import numpy as np

from manyworlds.viewer.browser.overlays.captures import capture
from manyworlds.viewer.browser.overlays.mujoco_visuals import MujocoOverlays
from manyworlds.viewer.browser.overlays.shapes import hinges_and_slides
from manyworlds.viewer.browser.overlays.table import FLAGS, OVERLAYS
from manyworlds.viewer.browser.overlays.world import (
    CAPTURES,
    Selection,
    WorldOverlays,
    default_force_scale,
    robot_bodies,
    wired_geoms,
)
from manyworlds.viewer.browser.reward_bar_panel import RewardBarPanel
from manyworlds.viewer.browser.term_plotter import ViserTermPlotter
from manyworlds.viewer.viser.camera_viewer import ViserCameraViewer
from manyworlds.viewer.world_mirror import WorldMirror

if TYPE_CHECKING:
    import viser

    from manyworlds.managers.manager_base import ManagerBase
    from manyworlds.sensor.camera_sensor import CameraSensor
    from manyworlds.viewer.base import BaseViewer, EnvProtocol
    from manyworlds.viewer.model_sync import DataArrays, ModelArrays

_PATH = "/over"
_CHART = cast("viser.IconName", "chart-bar")
_METRICS = cast("viser.IconName", "chart-line")
_CONTACTS = ("contact_points", "contact_forces")


@dataclass
class ViserTermOverlays:
    """Reward bars, and plots of rewards and metrics, of the selected world."""

    server: viser.ViserServer
    env: EnvProtocol
    scene: BaseViewer
    """Viewer with the selected world, `env_idx`."""
    frame_time: float
    """Period of the updates [s]."""
    reward_bar_max_terms: int = 20
    reward_plotter: ViserTermPlotter | None = None
    reward_bar_panel: RewardBarPanel | None = None
    metrics_plotter: ViserTermPlotter | None = None

    def setup_tabs(self, tabs: viser.GuiTabGroupHandle) -> None:
        """Add a tab for rewards and one for metrics, if there are any."""
        names = _names(self._manager("reward_manager"))
        if names:
            with tabs.add_tab("Rewards", icon=_CHART):
                self.reward_bar_panel = RewardBarPanel(
                    self.server, names, self.frame_time, self.reward_bar_max_terms
                )
                self.reward_plotter = ViserTermPlotter(self.server, names, "Reward")
        names = _names(self._manager("metrics_manager"))
        if names:
            with tabs.add_tab("Metrics", icon=_METRICS):
                self.metrics_plotter = ViserTermPlotter(self.server, names, "Metric")

    def on_env_switch(self) -> None:
        """Clear the histories, and show another world."""
        self.clear_histories()
        for plotter in (self.reward_plotter, self.metrics_plotter):
            if plotter is not None:
                plotter.update_env_idx(self.scene.env_idx)

    def update(self, paused: bool) -> None:
        """Add the terms of the last step, unless the worlds are paused."""
        if paused:
            return
        if self.reward_bar_panel is not None and self.reward_plotter is not None:
            terms = self._terms("reward_manager")
            self.reward_bar_panel.update(terms)
            self.reward_plotter.update(terms)
        if self.metrics_plotter is not None:
            self.metrics_plotter.update(self._terms("metrics_manager"))

    def clear_histories(self) -> None:
        """Clear the histories."""
        for part in (self.reward_bar_panel, self.reward_plotter, self.metrics_plotter):
            if part is not None:
                part.clear_histories()

    def cleanup(self) -> None:
        """Remove bars and plots."""
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
    """Images of the camera sensors."""

    server: viser.ViserServer
    env: EnvProtocol
    mj_model: mujoco.MjModel
    camera_viewers: list[ViserCameraViewer] | None = None
    _enabled: viser.GuiCheckboxHandle | None = field(default=None, init=False, repr=False)

    @property
    def has_cameras(self) -> bool:
        """True if the scene has a camera sensor."""
        return bool(self._sensors())

    def setup_controls(self) -> None:
        """Add the images to the present GUI container; they are slow, so they are off at first."""
        self._enabled = self.server.gui.add_checkbox("Show cameras", False)
        self.camera_viewers = [
            ViserCameraViewer(self.server, sensor, self.mj_model) for sensor in self._sensors()
        ]

    def update(self, sim_data: DataArrays, env_idx: int, scene_offset: np.ndarray | None) -> None:
        """Show the images of a world, if they are on."""
        if self._enabled is None or not self._enabled.value:
            return
        for viewer in self.camera_viewers or []:
            viewer.update(sim_data, env_idx, scene_offset)

    def cleanup(self) -> None:
        """Remove the images."""
        for viewer in self.camera_viewers or []:
            viewer.cleanup()
        if self._enabled is not None:
            self._enabled.remove()
        self.camera_viewers = None
        self._enabled = None

    def _sensors(self) -> list[CameraSensor]:
        from manyworlds.sensor.camera_sensor import CameraSensor

        scene = getattr(self.env.unwrapped, "scene", None)
        sensors = getattr(scene, "sensors", {})
        return [sensor for sensor in sensors.values() if isinstance(sensor, CameraSensor)]


@dataclass
class ViserDebugOverlays:
    """Debug shapes of managers and sensors."""

    env: EnvProtocol
    scene: MujocoOverlays
    enabled: bool = field(default=True, kw_only=True)

    def on_env_switch(self) -> None:
        """Remove the shapes of another world."""
        self.scene.debug.clear()

    def queue(self) -> None:
        """Make terms draw their shapes, for the next frame."""
        self.scene.debug.clear()
        draw = getattr(self.env.unwrapped, "update_visualizers", None)
        if self.enabled and draw is not None:
            self.scene.debug.select(self.scene.debug.env_idx)
            draw(self.scene.debug)


class SelectedWorldOverlays:
    """Overlays of one world of a batch, and debug shapes.

    Args:
        server: server of the page.
        model: the model that all worlds share.
        sim_model: `sim.model`, for fields that differ between worlds; None if none does.
        expanded_fields: `sim.expanded_fields`, the fields that differ.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        model: mujoco.MjModel,
        sim_model: ModelArrays | None = None,
        expanded_fields: Set[str] | None = None,
    ) -> None:
        self._world = WorldMirror(model, sim_model, expanded_fields)
        self.on: set[str] = set()
        """Names of the overlays that are on, except those of `FLAGS`."""
        self.mujoco = MujocoOverlays(server, self._world)
        self.shapes = WorldOverlays(server, self._world.model, _PATH)
        self._frame = server.scene.add_frame(_PATH, show_axes=False)
        self._force_scale = default_force_scale(model)
        self._robot_bodies = robot_bodies(model)
        self._shown = False

    def take_choices(self, before: SelectedWorldOverlays) -> None:
        """Switch on what another drawing of this model, which is removed, had switched on."""
        self.on |= before.on
        option = self.mujoco.option
        chosen = before.mujoco.option
        option.flags[:] = chosen.flags
        option.frame = chosen.frame
        self.mujoco.debug.show_all_envs = before.mujoco.debug.show_all_envs

    def switch(self, name: str, on: bool) -> None:
        """Switch an overlay on or off.

        Raises:
            ValueError: there is no such overlay.
        """
        if name not in OVERLAYS:
            raise ValueError(f"There is no overlay '{name}': use one of {', '.join(OVERLAYS)}.")
        if name in FLAGS:
            self.mujoco.option.flags[FLAGS[name]] = on
        elif on:
            self.on.add(name)
        else:
            self.on.discard(name)

    def toggle(self, names: Sequence[str]) -> None:
        """Switch overlays on, or off if the first of them is on."""
        on = not self.shows(names[0])
        for name in names:
            self.switch(name, on)

    @property
    def enabled(self) -> frozenset[str]:
        """Names of the overlays that are on."""
        return frozenset(filter(self.shows, OVERLAYS))

    def shows(self, name: str) -> bool:
        """Return True if an overlay is on."""
        if name in FLAGS:
            return bool(self.mujoco.option.flags[FLAGS[name]])
        return name in self.on

    def show(self, data: DataArrays, env_idx: int, offset: np.ndarray) -> None:
        """Draw the overlays that are on; nothing is copied or computed while all are off.

        Args:
            data: per-world arrays (`sim.data`).
            env_idx: the world.
            offset: displacement of the world in the drawing [m], shape (3,).
        """
        if self.on or self.mujoco.enabled:
            self._world.load(data, env_idx, dynamics=bool(self.on & {*_CONTACTS}))
        self.mujoco.show(offset)
        if not (self.on or self._shown):
            return
        model = self._world.model
        state = self._world.data
        selection = Selection(
            contact_points="contact_points" in self.on,
            contact_forces="contact_forces" in self.on,
            force_scale=self._force_scale,
            tendons="tendons" in self.on,
        )
        bodies = np.zeros(model.nbody, bool)
        if "collision" in self.on:
            bodies |= self._robot_bodies
        if "other_collision" in self.on:
            bodies |= ~self._robot_bodies
        selection.wireframes = wired_geoms(model, bodies, "convex_hulls" in self.on)
        if "sites" in self.on:
            selection.sites = np.arange(model.nsite)
        if "joints" in self.on:
            selection.joints = hinges_and_slides(model)
        kinds = {CAPTURES[name] for name in self.on & CAPTURES.keys()}
        self._frame.position = offset
        self.shapes.show(state, capture(model, state, kinds), selection)
        self._shown = bool(self.on)

    def remove(self) -> None:
        """Remove everything from the scene."""
        self.mujoco.remove()
        self.shapes.remove()
        self._frame.position = np.zeros(3)  # browsers keep the place of a name
        self._frame.remove()


@dataclass
class ViserContactOverlays:
    """Contacts of the selected world."""

    scene: SelectedWorldOverlays

    def is_enabled(self) -> bool:
        """Return True if contact points or forces are drawn."""
        return bool(self.scene.on & {*_CONTACTS})

    def on_env_switch(self) -> None:
        """Do nothing: contacts are drawn again in each frame."""


def _names(manager: ManagerBase[Any] | None) -> list[str]:
    if not manager:
        return []
    return [name for name, _ in manager.get_active_iterable_terms(0)]
