"""Tabs of the play page: overlays and groups, commands, checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

import mujoco

from manyworlds.viewer.actions import Action
from manyworlds.viewer.browser.markup import status_html
from manyworlds.viewer.browser.widgets import on_change, on_click
from manyworlds.viewer.viser.actions import (
    LoadCheckpoint,
    SeekMotion,
    ShowDebugShapes,
    ShowDebugShapesOfAll,
    ShowFrames,
    ShowGroup,
    ShowMujocoOverlay,
    ShowOverlay,
    SteerCommand,
)
from manyworlds.viewer.viser.checkpoints import CheckpointManager
from manyworlds.viewer.viser.overlays import OVERLAYS

if TYPE_CHECKING:
    import viser

    from manyworlds.managers import CommandManager, CommandTerm
    from manyworlds.viewer.viser.viewer import ViserPlayViewer

_EYE = cast("viser.IconName", "eye")
_DISK = cast("viser.IconName", "device-floppy")
_GAMEPAD = cast("viser.IconName", "device-gamepad-2")
_HOLD_SECONDS = 1.0  # time after a move of a slider by a user in which it is not updated
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


@runtime_checkable
class Steerable(Protocol):
    """Command term whose command users can set."""

    @property
    def steering(self) -> dict[str, tuple[float, float]]:
        """Bounds of the command's components by name, in order."""
        ...

    def steer(self, env_idx: int, command: Sequence[float] | None) -> None:
        """Set the command of a world; None lets it be sampled again."""
        ...


@runtime_checkable
class Seekable(Protocol):
    """Command term that plays a motion, and can be moved to a frame."""

    @property
    def num_frames(self) -> int:
        """Number of frames of the motion."""
        ...

    def frame_of(self, env_idx: int) -> int:
        """Return the present frame of a world."""
        ...

    def seek(self, env_idx: int, frame: int) -> None:
        """Set the robot of a world to a frame."""
        ...


def add_visualization_tab(
    server: viser.ViserServer, viewer: ViserPlayViewer, tabs: viser.GuiTabGroupHandle
) -> None:
    """Add overlays of the selected world, and groups that are drawn in all worlds."""
    gui = server.gui

    def checkbox(label: str, value: bool, action: Callable[[bool], Action]) -> None:
        on_change(gui.add_checkbox(label, value), lambda on: viewer.request(action(on)))

    with tabs.add_tab("Visualization", icon=_EYE):
        if hasattr(viewer.env.unwrapped, "update_visualizers"):
            checkbox("Debug shapes", True, ShowDebugShapes)
            if viewer.num_shown > 1:
                checkbox("... in all worlds", False, ShowDebugShapesOfAll)
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


class CommandTab:
    """Sliders of commands that can be set or sought, and controls of command terms.

    Without such commands there is no tab.

    Args:
        server: server of the page.
        viewer: viewer that carries out the requests.
        tabs: tabs of the page.
    """

    def __init__(
        self, server: viser.ViserServer, viewer: ViserPlayViewer, tabs: viser.GuiTabGroupHandle
    ) -> None:
        self._viewer = viewer
        self._sought: list[MotionSlider] = []
        manager: CommandManager | None = getattr(viewer.env.unwrapped, "command_manager", None)
        terms = {name: manager.get_term(name) for name in manager.active_terms} if manager else {}
        steered = {name: term for name, term in terms.items() if isinstance(term, Steerable)}
        sought = {name: term for name, term in terms.items() if isinstance(term, Seekable)}
        own = [term for term in terms.values() if _has_gui(term)]
        if not steered and not sought and not own:
            return
        with tabs.add_tab("Commands", icon=_GAMEPAD):
            for name, term in steered.items():
                self._add_steering(server.gui, name, term)
            self._sought = [
                MotionSlider(server.gui, viewer, name, term) for name, term in sought.items()
            ]
            if manager is not None and own:
                manager.create_gui(
                    server, lambda: viewer.env_idx, viewer.request_redraw, viewer.request_action
                )

    def update(self) -> None:
        """Show the present frames of motions."""
        for slider in self._sought:
            slider.update()

    def _add_steering(self, gui: viser.GuiApi, name: str, term: Steerable) -> None:
        viewer = self._viewer
        active = gui.add_checkbox(
            f"Steer '{name}'", False, hint="Set the selected world's command."
        )
        sliders = []
        for label, (low, high) in term.steering.items():
            # A narrow range of training still lets users set both signs.
            reach = max(abs(low), abs(high), 0.1)
            sliders.append(gui.add_slider(label, -reach, reach, reach / 50, 0.0))

        def send() -> None:
            values = tuple(slider.value for slider in sliders) if active.value else None
            viewer.request(SteerCommand(name, values))

        def stop() -> None:
            for slider in sliders:
                slider.value = 0.0
            send()

        on_click(gui.add_button("Stop"), stop)
        for handle in (active, *sliders):
            on_change(handle, lambda _: send())


class MotionSlider:
    """Slider over the frames of a motion.

    Args:
        gui: GUI of the page.
        viewer: viewer that carries out the requests.
        name: name of the command term.
        term: the term.
    """

    def __init__(
        self, gui: viser.GuiApi, viewer: ViserPlayViewer, name: str, term: Seekable
    ) -> None:
        self._viewer, self._name, self._term = viewer, name, term
        self._next = 0.0
        self.slider = gui.add_slider(f"Frame of '{name}'", 0, term.num_frames - 1, 1, 0)
        on_change(self.slider, self._seek)

    def update(self) -> None:
        """Show the frame of the selected world, unless a user has just moved the slider."""
        if time.monotonic() >= self._next:
            self.slider.value = self._term.frame_of(self._viewer.env_idx)

    def _seek(self, frame: float) -> None:
        self._next = time.monotonic() + _HOLD_SECONDS
        self._viewer.request(SeekMotion(self._name, int(frame)))


def _has_gui(term: CommandTerm) -> bool:
    from manyworlds.managers import CommandTerm

    return type(term).create_gui is not CommandTerm.create_gui


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
