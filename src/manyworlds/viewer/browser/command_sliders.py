"""Sliders that set commands and seek motions in one world."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from manyworlds.utils.overrides import overrides
from manyworlds.viewer.browser.widgets import on_change, on_click
from manyworlds.viewer.requests import SeekMotion, SteerCommand

if TYPE_CHECKING:
    import viser

    from manyworlds.managers import CommandManager
    from manyworlds.viewer.requests import ViewerRequest

_GAMEPAD = cast("viser.IconName", "device-gamepad-2")
TWIST_LABELS = {
    "lin_vel_x": "forward [m/s]",
    "lin_vel_y": "left [m/s]",
    "ang_vel_z": "turn [rad/s]",
}
"""Labels of the components of a velocity command, by name, in order."""
_HOLD_SECONDS = 1.0  # time after a move of a slider by a user in which it is not updated


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


class CommandHost(Protocol):
    """Page that carries out the requests of command controls."""

    env: Any
    """The environment, bare or in a wrapper."""
    env_idx: int
    """Index of the selected world."""

    def request(self, action: ViewerRequest) -> None:
        """Request an action."""
        ...

    def request_redraw(self) -> None:
        """Request a frame."""
        ...

    def request_action(self, name: str, payload: object = None) -> None:
        """Request an action by its name."""
        ...


class CommandTab:
    """Sliders of commands that can be set or sought, and controls of command terms.

    Without such commands there is no tab.

    Args:
        server: server of the page.
        viewer: page that carries out the requests.
        tabs: tabs of the page.
        terms: command terms by name; None takes those of the page's environment, and adds their
            own widgets.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        viewer: CommandHost,
        tabs: viser.GuiTabGroupHandle,
        terms: Mapping[str, object] | None = None,
    ) -> None:
        self._viewer = viewer
        self._sought: list[MotionSlider] = []
        manager: CommandManager | None = None
        if terms is None:
            manager = getattr(viewer.env.unwrapped, "command_manager", None)
            terms = {}
            if manager:
                terms = {name: manager.get_term(name) for name in manager.active_terms}
        steered = {name: term for name, term in terms.items() if isinstance(term, Steerable)}
        sought = {name: term for name, term in terms.items() if isinstance(term, Seekable)}
        own = []
        if manager:
            from manyworlds.managers import CommandTerm

            own = [term for term in terms.values() if overrides(term, CommandTerm, "create_gui")]
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
        """Add sliders that set a command."""
        viewer = self._viewer
        active = gui.add_checkbox(
            f"Set command '{name}'", False, hint="Off: the task samples the command."
        )
        sliders = []
        for label, (low, high) in term.steering.items():
            # A narrow range of training still lets users set both signs.
            reach = max(abs(low), abs(high), 0.1)
            label = TWIST_LABELS.get(label, label)
            sliders.append(gui.add_slider(label, -reach, reach, reach / 50, 0.0))

        def send() -> None:
            values = None
            if active.value:
                values = tuple(slider.value for slider in sliders)
            viewer.request(SteerCommand(name, values))

        def stop() -> None:
            for slider in sliders:
                slider.value = 0.0
            send()

        on_click(gui.add_button("Zero command"), stop)
        for handle in (active, *sliders):
            on_change(handle, lambda _: send())


class MotionSlider:
    """Slider over the frames of a motion.

    Args:
        gui: GUI of the page.
        viewer: page that carries out the requests.
        name: name of the command term.
        term: the term.
    """

    def __init__(self, gui: viser.GuiApi, viewer: CommandHost, name: str, term: Seekable) -> None:
        self._viewer = viewer
        self._name = name
        self._term = term
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
