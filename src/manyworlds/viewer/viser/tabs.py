"""Tabs of the play page for overlays and groups, and for checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

from manyworlds.viewer.browser.markup import status_html
from manyworlds.viewer.browser.overlays.table import FRAMES, OVERLAYS, frames_label
from manyworlds.viewer.browser.widgets import on_change, on_click
from manyworlds.viewer.requests import ViewerRequest
from manyworlds.viewer.viser.checkpoints import CheckpointManager
from manyworlds.viewer.viser.requests import (
    LoadCheckpoint,
    ShowDebugShapes,
    ShowDebugShapesOfAll,
    ShowFrames,
    ShowGroup,
    ShowOverlay,
)

if TYPE_CHECKING:
    import viser

    from manyworlds.viewer.viser.overlays import SelectedWorldOverlays
    from manyworlds.viewer.viser.viewer import ViserPlayViewer

_EYE = cast("viser.IconName", "eye")
_DISK = cast("viser.IconName", "device-floppy")


class VisualizationTab:
    """Tab with the overlays of the selected world, and the groups drawn in all worlds.

    Args:
        server: server of the page.
        viewer: viewer that carries out the requests.
        tabs: tabs of the page.
    """

    def __init__(
        self, server: viser.ViserServer, viewer: ViserPlayViewer, tabs: viser.GuiTabGroupHandle
    ) -> None:
        self._gui = server.gui
        self._viewer = viewer
        self.debug: viser.GuiCheckboxHandle | None = None
        self.debug_all: viser.GuiCheckboxHandle | None = None
        with tabs.add_tab("Visualization", icon=_EYE):
            if hasattr(viewer.env.unwrapped, "update_visualizers"):
                self.debug = self._checkbox("Debug shapes", True, ShowDebugShapes)
                if viewer.num_shown > 1:
                    label = "Debug shapes in all worlds"
                    self.debug_all = self._checkbox(label, False, ShowDebugShapesOfAll)
                manager = getattr(viewer.env.unwrapped, "command_manager", None)
                if manager is not None:
                    manager.create_debug_vis_gui(server, viewer.request_redraw)
            self.boxes = {
                name: self._checkbox(label, False, partial(ShowOverlay, name))
                for name, label in OVERLAYS.items()
            }
            """Checkbox of each overlay, by name."""
            self.frames = self._gui.add_dropdown("Frames", tuple(FRAMES))
            on_change(self.frames, lambda name: viewer.request(ShowFrames(FRAMES[name])))
            if viewer.cameras.has_cameras:
                viewer.cameras.setup_controls()
            with self._gui.add_folder("Groups", expand_by_default=False):
                for kind, shown in viewer.groups.items():
                    for group, visible in enumerate(shown):
                        label = f"{kind}s of group {group}"
                        self._checkbox(label, visible, partial(ShowGroup, kind, group))

    def update(self, overlays: SelectedWorldOverlays, debug: bool) -> None:
        """Show what is on: keys switch it as well."""
        for name, box in self.boxes.items():
            box.value = overlays.shows(name)
        self.frames.value = frames_label(overlays.mujoco.option.frame)
        if self.debug is not None:
            self.debug.value = debug
        if self.debug_all is not None:
            self.debug_all.value = overlays.mujoco.debug.show_all_envs

    def _checkbox(
        self, label: str, value: bool, action: Callable[[bool], ViewerRequest]
    ) -> viser.GuiCheckboxHandle:
        box = self._gui.add_checkbox(label, value)
        return on_change(box, lambda on: self._viewer.request(action(on)))


class CheckpointTab:
    """Tab with the checkpoints of the run that is played.

    Args:
        server: server of the page.
        viewer: viewer that carries out the requests.
        tabs: tabs of the page.
        manager: source of checkpoints.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        viewer: ViserPlayViewer,
        tabs: viser.GuiTabGroupHandle,
        manager: CheckpointManager,
    ) -> None:
        self._manager = manager
        gui = server.gui
        with tabs.add_tab("Checkpoints", icon=_DISK):
            self._text = gui.add_html("")
            self._choice = gui.add_dropdown("Checkpoint", (manager.current_name,))
            load = gui.add_button("Load")
            on_click(load, lambda: viewer.request(LoadCheckpoint(self._choice.value)))
            follow = gui.add_checkbox(
                "Follow the newest",
                manager.follow,
                hint="Load each new checkpoint as soon as training has written it.",
            )
            on_change(follow, self._follow)
        self.update(manager.fetch_available())

    def _follow(self, on: bool) -> None:
        self._manager.follow = on

    def update(self, available: list[tuple[str, str]]) -> None:
        """Show the checkpoints, and the one that is played.

        Args:
            available: names and ages.
        """
        names = tuple(name for name, _ in available) or (self._manager.current_name,)
        if self._choice.options != names:
            self._choice.options = names
        ages = dict(available)
        rows = [("Run", self._manager.run_name), ("Status", self._manager.run_status)]
        rows += [("Playing", self._manager.current_name)]
        rows += [("Written", ages.get(self._manager.current_name))]
        known = ((name, value) for name, value in rows if value)
        self._text.content = status_html(known, name_em=4.5)
