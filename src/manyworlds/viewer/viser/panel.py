"""The controls beside the picture: buttons, keys, and a line that says how things are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from manyworlds.viewer.base import ViewerStatus
from manyworlds.viewer.browser.markup import status_html
from manyworlds.viewer.browser.world_grid import MAX_LABELS as _MAX_LABELS

if TYPE_CHECKING:
    import viser

    from manyworlds.viewer.base import BaseViewer

# Icon names; viser's own type for them exists only once it is imported.
_PAUSE: Any = "player-pause"
_PLAY: Any = "player-play"
_CONTROLS: Any = "adjustments"


@dataclass(frozen=True)
class PanelState:
    """What the panel shows."""

    status: ViewerStatus
    env_idx: int
    """The selected world."""
    shown: range
    """The worlds on the page."""
    num_envs: int
    time: float
    """Simulated time of the selected world [s]."""
    diverged: bool
    """The selected world's state is not finite."""


class ControlPanel:
    """Controls of a viewer in the browser. Callbacks only leave requests with the viewer.

    Args:
        server: where the controls go.
        viewer: whose requests to make.
        can_follow: whether there is a body to follow.
        follow: whether the viewer begins by following it.
        num_shown: how many worlds are shown at once.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        viewer: BaseViewer,
        *,
        can_follow: bool,
        follow: bool,
        num_shown: int,
    ) -> None:
        self._viewer = viewer
        self._handles: list[Any] = []
        gui = server.gui
        with server.atomic():
            self._status = self._keep(gui.add_html(""))
            self.tabs = self._keep(gui.add_tab_group())
            """Where further tabs go."""
            with self.tabs.add_tab("Controls", icon=_CONTROLS):
                self._add_controls(gui, num_shown)
                if can_follow:
                    self._checkbox(gui, "Follow robots", follow, "follow")
            self._add_keys(gui)

    def _add_controls(self, gui: Any, num_shown: int) -> None:
        viewer = self._viewer
        self._pause = gui.add_button("Pause", icon=_PAUSE)
        self._pause.on_click(lambda _: viewer.request_toggle_pause())
        self._choice(
            gui,
            "Run",
            {"Single step": viewer.request_single_step, "Reset": viewer.request_reset},
        )
        self._choice(
            gui,
            "Speed",
            {
                "Slower": viewer.request_speed_down,
                "1x": viewer.request_reset_speed,
                "Faster": viewer.request_speed_up,
            },
        )
        self._world: Any = None
        if viewer.env.num_envs > 1:
            self._add_world_controls(gui, num_shown)

    def update(self, state: PanelState) -> None:
        """Show a new state; viser sends only what changed."""
        status = state.status
        label, icon = ("Play", _PLAY) if status.paused else ("Pause", _PAUSE)
        if self._pause.label != label:
            self._pause.label, self._pause.icon = label, icon
        self._status.content = _status_html(state)
        if self._world is not None:
            self._world.value = state.env_idx

    def remove(self) -> None:
        """Take all controls away."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _add_world_controls(self, gui: Any, num_shown: int) -> None:
        viewer = self._viewer
        num_envs = viewer.env.num_envs
        world = gui.add_number(
            f"World (0-{num_envs - 1})",
            viewer.env_idx,
            min=0,
            max=num_envs - 1,
            step=1,
            hint=f"The selected world; the page shows {num_shown} of {num_envs}.",
        )
        self._world = world

        @world.on_update
        def _(event: Any) -> None:
            if event.client is not None:
                viewer.request_action("custom", ("select", int(world.value)))

        self._choice(
            gui,
            "Select",
            {
                "Previous": lambda: viewer.request_action("prev_env"),
                "Next": lambda: viewer.request_action("next_env"),
            },
        )
        self._choice(
            gui,
            "Look at",
            {
                "All": lambda: viewer.request_action("custom", ("look", False)),
                "Selected": lambda: viewer.request_action("custom", ("look", True)),
            },
        )
        if num_shown <= _MAX_LABELS:
            self._checkbox(gui, "World numbers", True, "labels")

    def _add_keys(self, gui: Any) -> None:
        viewer = self._viewer
        keys: list[tuple[str, Any, Callable[[], None]]] = [
            ("Pause or play", "space", viewer.request_toggle_pause),
            ("Single step", "N", viewer.request_single_step),
            ("Reset", "enter", viewer.request_reset),
            ("Slower", "-", viewer.request_speed_down),
            ("Faster", "=", viewer.request_speed_up),
            ("Debug shapes", "R", lambda: viewer.request_action("toggle_debug_vis")),
        ]
        if viewer.env.num_envs > 1:
            keys += [
                ("Previous world", ",", lambda: viewer.request_action("prev_env")),
                ("Next world", ".", lambda: viewer.request_action("next_env")),
            ]
        for label, key, request in keys:
            command = self._keep(gui.add_command(label, hotkey=key))
            command.on_trigger(lambda _, request=request: request())

    def _choice(self, gui: Any, label: str, requests: dict[str, Callable[[], None]]) -> None:
        group = gui.add_button_group(label, tuple(requests))
        group.on_click(lambda event: requests[event.target.value]())

    def _checkbox(self, gui: Any, label: str, value: bool, name: str) -> None:
        box = gui.add_checkbox(label, value)
        box.on_update(lambda _: self._viewer.request_action("custom", (name, bool(box.value))))

    def _keep(self, handle: Any) -> Any:
        self._handles.append(handle)
        return handle


def _status_html(state: PanelState) -> str:
    status = state.status
    if status.paused:
        pace = "paused"
    else:
        pace = f"{status.actual_realtime:.2f}x real time"
        if status.capped:
            pace += " (as fast as it goes)"
    rows = [
        ("World", str(state.env_idx)),
        ("Shown", f"{state.shown.start} to {state.shown.stop - 1} of {state.num_envs}"),
        ("Time", "not finite: reset" if state.diverged else f"{state.time:.2f} s"),
        ("Pace", pace),
        ("Speed", status.speed_label),
    ]
    return status_html(rows, status.last_error or "")
