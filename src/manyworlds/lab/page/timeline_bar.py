"""Timeline on the page: a slider over the last seconds, single steps, and branches."""

from __future__ import annotations

import math
import time
from typing import Any

from viser._messages import GuiSliderMark

from manyworlds.lab.page.page_context import PageContext
from manyworlds.lab.snapshot import Snapshot
from manyworlds.viewer.browser.markup import note_html
from manyworlds.viewer.browser.widgets import add_choice

_HOLD_S = 0.5  # time after a move of the slider by a user in which it is not updated
_MARGIN_S = 0.3  # the oldest moments, which may be dropped before the world is paused
_LEAST_S = 0.5  # shortest length of the slider
_SYMBOLS = {"edit": "✎", "reset": "↺", "state": "⇥", "push": "➶", "branch": "⑂", "rebuild": "⟳"}
_MARKS = 12  # the newest marks, which do not cover one another


class TimelinePart:
    """Slider of the time before the present, with marks, and buttons to step and to continue.

    Args:
        ctx: context of the page.
    """

    period = 0.2

    def __init__(self, ctx: PageContext) -> None:
        self._ctx, self._touched, self._shown = ctx, -math.inf, ()
        gui = ctx.gui
        with gui.add_folder("Timeline", expand_by_default=True):
            self.slider = gui.add_slider(
                "Before now [s]",
                -_LEAST_S,
                0.0,
                0.001,
                0.0,
                hint="Drag to go back. The present is kept until you continue from the past.",
            )
            ctx.on_change(self.slider, self._seek)
            steps = {
                "-10": lambda: self.step(-10),
                "-1": lambda: self.step(-1),
                "+1": lambda: self.step(1),
                "+10": lambda: self.step(10),
            }
            self.steps = add_choice(gui, "Steps", steps, ctx.attempt)
            self.branch = ctx.on_click(
                gui.add_button("Continue from here", disabled=True), self._branch
            )
            self.back = ctx.on_click(
                gui.add_button("Back to the present", disabled=True, color="gray"), self._leave
            )
            self.swap = ctx.on_click(
                gui.add_button("The other future", visible=False, color="gray"),
                lambda: ctx.call("timeline_swap"),
            )
            self.note = gui.add_html("")

    def renew(self) -> list[str]:
        """Keep the controls over a rebuild."""
        return []

    def step(self, num_frames: int) -> None:
        """Show an earlier or later moment."""
        self._ctx.call("timeline_step", n_frames=num_frames)

    def update(self, snapshot: Snapshot) -> None:
        """Show how far back the world can go, what happened when, and the moment that is shown."""
        state: dict[str, Any] = self._ctx.lab.status["timeline"]
        active = state["is_active"]
        for button in (self.branch, self.back):
            if button.disabled == active:
                button.disabled = not active
        if self.swap.visible != state["has_other"]:
            self.swap.visible = state["has_other"]
        if time.monotonic() - self._touched > _HOLD_S:
            length = max(_LEAST_S, math.ceil(2.0 * state["duration_s"]) / 2.0)
            if self.slider.min != -length:
                self.slider.min = -length
            if self.slider.value != -state["ago"]:
                self.slider.value = -state["ago"]
        marks = [mark for mark in state["marks"] if mark["kind"] in _SYMBOLS][-_MARKS:]
        shown = tuple((-round(mark["ago"], 1), _SYMBOLS[mark["kind"]]) for mark in marks)
        if shown != self._shown:
            self._shown = shown
            # viser has no public attribute for marks after the slider was made.
            self.slider._marks = tuple(GuiSliderMark(value=v, label=text) for v, text in shown)
        text = "; ".join(state["notes"])
        if active:
            near = [m for m in marks if abs(m["ago"] - state["ago"]) < 0.05]
            what = "".join(f", {m['kind']} {m['label']}".rstrip() for m in near)
            text = f"{state['ago']:.3f} s ago, at {snapshot.time:.3f} s{what}"
        self.note.content = note_html(text)

    def _seek(self, value: float) -> None:
        self._touched = time.monotonic()
        length = self._ctx.lab.status["timeline"]["duration_s"] - _MARGIN_S
        ago = min(-value, length)
        self._ctx.call("timeline_seek", ago=max(0.0, ago))

    def _branch(self) -> None:
        notes: Any = self._ctx.call("timeline_branch")["notes"]
        self._ctx.note = "; ".join(notes)

    def _leave(self) -> None:
        self._ctx.call("timeline_leave")
