"""Controls of the play page: buttons, keys and a status line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from manyworlds.viewer.base import ViewerStatus
from manyworlds.viewer.browser.kept_tabs import keep_tabs
from manyworlds.viewer.browser.keys import PageKeys
from manyworlds.viewer.browser.markup import status_html
from manyworlds.viewer.browser.overlays.table import OVERLAY_KEYS
from manyworlds.viewer.browser.typed_fields import wait_for_commits
from manyworlds.viewer.browser.widgets import (
    PAUSE,
    ShownValue,
    add_choice,
    add_number,
    on_change,
    on_click,
    show_playing,
)
from manyworlds.viewer.browser.world_grid import MAX_LABELS
from manyworlds.viewer.requests import (
    NextEnv,
    PreviousEnv,
    Reset,
    ResetSpeed,
    SelectEnv,
    SingleStep,
    SpeedDown,
    SpeedUp,
    ToggleDebugVis,
    TogglePause,
    ViewerRequest,
)
from manyworlds.viewer.viser.requests import (
    FollowRobots,
    LookAt,
    ShowWorldNumbers,
    ToggleOverlays,
    WalkIn,
)

if TYPE_CHECKING:
    import viser

    from manyworlds.viewer.base import BaseViewer

_CONTROLS = cast("viser.IconName", "adjustments")
_DOOR = cast("viser.IconName", "door-enter")


@dataclass(frozen=True)
class PanelState:
    """State that the panel shows."""

    status: ViewerStatus
    env_idx: int
    """Selected world."""
    shown: range
    """Worlds that are shown."""
    num_envs: int
    time: float
    """Simulated time of the selected world [s]."""
    diverged: bool
    """True if the selected world's state is not finite."""


class RunControls:
    """Controls of the play page, which queue requests to the viewer.

    Args:
        server: server of the page.
        viewer: viewer that carries out the requests.
        can_follow: whether there is a body to follow.
        follow: whether the viewer follows it at first.
        num_shown: number of worlds that are shown at once.
        can_walk_in: whether the viewer can open the selected world in a lab.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        viewer: BaseViewer,
        *,
        can_follow: bool,
        follow: bool,
        num_shown: int,
        can_walk_in: bool = False,
    ) -> None:
        self._viewer = viewer
        self._walk_in: viser.GuiButtonHandle | None = None
        self._follow: viser.GuiCheckboxHandle | None = None
        gui = server.gui
        with server.atomic():
            self._scripts = wait_for_commits(gui), keep_tabs(gui)
            self._status = gui.add_html("")
            self.tabs = gui.add_tab_group()
            """Tabs of the page; further ones can be added."""
            with self.tabs.add_tab("Controls", icon=_CONTROLS):
                pause = gui.add_button("Pause", icon=PAUSE)
                self._pause = on_click(pause, self._requests(TogglePause()))
                self._add_choice(gui, "Run", {"Single step": SingleStep(), "Reset": Reset()})
                speeds = {"Slower": SpeedDown(), "1x": ResetSpeed(), "Faster": SpeedUp()}
                self._add_choice(gui, "Speed", speeds)
                self._world: ShownValue[int] | None = None
                if viewer.env.num_envs > 1:
                    self._world = self._add_world_controls(gui, num_shown)
                    if can_follow:
                        self._follow = self._add_checkbox(
                            gui, "Follow robots", follow, FollowRobots
                        )
                if can_walk_in:
                    hint = "Open the selected world in a lab: pull, control, record, edit it."
                    self._walk_in = gui.add_button("Walk in", icon=_DOOR, hint=hint)
                    on_click(self._walk_in, self._requests(WalkIn()))
            self.keys = PageKeys(gui, "play", self._actions(can_walk_in, can_follow))

    def update(self, state: PanelState) -> None:
        """Show a new state; viser sends only what changed."""
        show_playing(self._pause, not state.status.paused)
        self._status.content = _status_html(state)
        if self._world is not None:
            self._world.show(state.env_idx)

    def remove(self) -> None:
        """Remove all controls."""
        for part in (self._status, self.tabs, *self._scripts, self._walk_in, self.keys):
            if part is not None:
                part.remove()

    def show_following(self, on: bool) -> None:
        """Show whether the views follow the robots."""
        if self._follow is not None:
            self._follow.value = on

    def show_entering(self, entering: bool) -> None:
        """Show that the selected world is being opened, which takes some seconds."""
        if self._walk_in is not None:
            self._walk_in.disabled = entering
            self._walk_in.label = "Walk in"
            if entering:
                self._walk_in.label = "Opening ..."

    def _add_world_controls(self, gui: viser.GuiApi, num_shown: int) -> ShownValue[int]:
        """Add controls that select a world."""
        viewer = self._viewer
        num_envs = viewer.env.num_envs
        world = add_number(
            gui,
            f"World (0-{num_envs - 1})",
            viewer.env_idx,
            min=0,
            max=num_envs - 1,
            step=1,
            hint=f"The selected world; the page shows {num_shown} of {num_envs}.",
        )
        on_change(world, lambda env_idx: viewer.request(SelectEnv(int(env_idx))))
        self._add_choice(gui, "Select", {"Previous": PreviousEnv(), "Next": NextEnv()})
        self._add_choice(gui, "Look at", {"All": LookAt(False), "Selected": LookAt(True)})
        if num_shown <= MAX_LABELS:
            self._add_checkbox(gui, "World numbers", True, ShowWorldNumbers)
        return ShownValue(world)

    def _actions(self, can_walk_in: bool, can_follow: bool) -> dict[str, Callable[[], None]]:
        """Return the functions of keys, by name in `KEYS`."""
        actions: dict[str, ViewerRequest] = {
            "pause": TogglePause(),
            "step": SingleStep(),
            "reset": Reset(),
            "slower": SpeedDown(),
            "faster": SpeedUp(),
            "frame": LookAt(None),
            "debug_shapes": ToggleDebugVis(),
            **{name: ToggleOverlays(names) for name, names in OVERLAY_KEYS.items()},
        }
        if self._viewer.env.num_envs > 1:
            actions |= {"previous_world": PreviousEnv(), "next_world": NextEnv()}
        if can_walk_in:
            actions["walk_in"] = WalkIn()
        if can_follow:
            actions["follow"] = FollowRobots(None)
        return {name: self._requests(action) for name, action in actions.items()}

    def _requests(self, action: ViewerRequest) -> Callable[[], None]:
        return lambda: self._viewer.request(action)

    def _add_choice(self, gui: viser.GuiApi, label: str, actions: dict[str, ViewerRequest]) -> None:
        add_choice(gui, label, {name: self._requests(action) for name, action in actions.items()})

    def _add_checkbox(
        self, gui: viser.GuiApi, label: str, value: bool, action: Callable[[bool], ViewerRequest]
    ) -> viser.GuiCheckboxHandle:
        box = gui.add_checkbox(label, value)
        return on_change(box, lambda on: self._viewer.request(action(on)))


def _status_html(state: PanelState) -> str:
    """Return the status as HTML."""
    status = state.status
    if status.paused:
        pace = "paused"
    else:
        pace = f"{status.actual_realtime:.2f}x real time"
        if status.capped:
            pace += " (at the limit)"
    time = f"{state.time:.2f} s"
    if state.diverged:
        time = "not finite: reset"
    errors = []
    if status.last_error:
        errors = [status.last_error]
    rows = [
        ("World", str(state.env_idx)),
        ("Shown", f"{state.shown.start} to {state.shown.stop - 1} of {state.num_envs}"),
        ("Time", time),
        ("Speed", pace),
        ("Requested", status.speed_label),
    ]
    return status_html(rows, errors)
