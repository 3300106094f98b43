"""Tabs of the play page for overlays and groups, and for checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

import mujoco

from manyworlds.viewer.browser.markup import status_html
from manyworlds.viewer.browser.widgets import on_change, on_click
from manyworlds.viewer.requests import ViewerRequest
from manyworlds.viewer.viser.checkpoints import CheckpointManager
from manyworlds.viewer.viser.overlays import OVERLAYS
from manyworlds.viewer.viser.requests import (
    LoadCheckpoint,
    ShowDebugShapes,
    ShowDebugShapesOfAll,
    ShowFrames,
    ShowGroup,
    ShowMujocoOverlay,
    ShowOverlay,
)

if TYPE_CHECKING:
    import viser

    from manyworlds.viewer.viser.viewer import ViserPlayViewer

_EYE = cast("viser.IconName", "eye")
_DISK = cast("viser.IconName", "device-floppy")
_Flag = mujoco.mjtVisFlag
_FLAGS = {
    "Inertia boxes": _Flag.mjVIS_INERTIA,
    "Centers of mass": _Flag.mjVIS_COM,
    "Actuators": _Flag.mjVIS_ACTUATOR,
    "Cameras": _Flag.mjVIS_CAMERA,
    "Lights": _Flag.mjVIS_LIGHT,
}
_FRAMES = {
    "None": mujoco.mjtFrame.mjFRAME_NONE,
    "Bodies": mujoco.mjtFrame.mjFRAME_BODY,
    "Geoms": mujoco.mjtFrame.mjFRAME_GEOM,
    "Sites": mujoco.mjtFrame.mjFRAME_SITE,
}


def add_visualization_tab(
    server: viser.ViserServer, viewer: ViserPlayViewer, tabs: viser.GuiTabGroupHandle
) -> None:
    """Add overlays of the selected world, and groups that are drawn in all worlds."""
    gui = server.gui

    def checkbox(label: str, value: bool, action: Callable[[bool], ViewerRequest]) -> None:
        on_change(gui.add_checkbox(label, value), lambda on: viewer.request(action(on)))

    with tabs.add_tab("Visualization", icon=_EYE):
        if hasattr(viewer.env.unwrapped, "update_visualizers"):
            checkbox("Debug shapes", True, ShowDebugShapes)
            if viewer.num_shown > 1:
                checkbox("Debug shapes in all worlds", False, ShowDebugShapesOfAll)
            manager = getattr(viewer.env.unwrapped, "command_manager", None)
            if manager is not None:
                manager.create_debug_vis_gui(server, viewer.request_redraw)
        for name, label in OVERLAYS.items():
            checkbox(label, False, partial(ShowOverlay, name))
        for label, flag in _FLAGS.items():
            checkbox(label, False, partial(ShowMujocoOverlay, flag))
        frames = gui.add_dropdown("Frames", tuple(_FRAMES))
        on_change(frames, lambda name: viewer.request(ShowFrames(_FRAMES[name])))
        if viewer.cameras.has_cameras:
            viewer.cameras.setup_controls()
        with gui.add_folder("Groups", expand_by_default=False):
            for kind, shown in viewer.groups.items():
                for group, visible in enumerate(shown):
                    label = f"{kind}s of group {group}"
                    checkbox(label, visible, partial(ShowGroup, kind, group))


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
