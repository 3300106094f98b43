"""Bar in the header of the page: the live world, its past and recordings in one place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from manyworlds.lab.facts import to_plain
from manyworlds.lab.page.page_boxes import box_html
from manyworlds.lab.page.page_context import KeptPart, PageContext

RECORD = "record"
"""Message by which a browser asks to start or to stop a recording, which a part answers."""
_MARGIN_S = 0.3  # the oldest moments, which may be dropped before the world is paused


class TransportPart(KeptPart):
    """Gives the bar in browsers the state that it shows, and carries out what it asks for.

    While a recording replaces physics, the bar is that of the recording; otherwise that of the
    timeline.

    Args:
        ctx: context of the page.
        address: address of the page's own WebSocket, see `DrivePart`.
        order: place of the bar on the page.
    """

    period = math.inf
    """Browsers ask for what the bar shows."""

    def __init__(self, ctx: PageContext, address: str, order: float) -> None:
        super().__init__(ctx)
        script = box_html("transport_box", f'"{address}", this.parentElement')
        self.html = ctx.gui.add_html(script, order=order)
        ctx.answers["transport"] = self._answer

    def step(self, num_frames: int) -> None:
        """Show an earlier or later moment of what is shown."""
        if self._ctx.lab.facts.replay.is_active:
            self._ctx.verbs.replay_step_frames(n_frames=num_frames)
        else:
            self._ctx.verbs.timeline_step(n_frames=num_frames)

    def seek(self, time: float) -> None:
        """Show a moment.

        Args:
            time: time since the first frame of the recording [s], or before now.
        """
        facts = self._ctx.lab.facts
        if facts.replay.is_active:
            self._ctx.verbs.replay_seek(replay_time=time)
        else:
            most = max(0.0, facts.timeline.duration_s - _MARGIN_S)
            self._ctx.verbs.timeline_seek(ago=min(max(0.0, time), most))

    def leave(self) -> None:
        """Return to the present."""
        if self._ctx.lab.facts.replay.is_active:
            self._ctx.verbs.replay_stop()
        else:
            self._ctx.verbs.timeline_leave()

    def branch(self) -> None:
        """Continue from the moment that is shown."""
        if self._ctx.lab.facts.replay.is_active:
            self._ctx.verbs.replay_stop(restore=False)
        else:
            self._ctx.verbs.timeline_branch()

    def _answer(self, browser: str, message: dict[str, Any]) -> dict[str, object]:
        """Carry out what a browser asks for, if anything, and return what the bar shows.

        Args:
            browser: name of the browser.
            message: `seek`, see the method; `step`, a number of moments; or True for `branch`,
                `leave`, `swap` or `record`.
        """
        actions: dict[str, Callable[[], object]] = {
            "branch": self.branch,
            "leave": self.leave,
            "swap": self._ctx.verbs.timeline_swap,
            RECORD: lambda: self._ctx.answers[RECORD](browser, {}),
        }
        if "seek" in message:
            self.seek(float(message["seek"]))
        elif "step" in message:
            self.step(int(message["step"]))
        for name, action in actions.items():
            if name in message:
                action()
        facts = self._ctx.lab.facts
        return {
            "timeline": to_plain(facts.timeline),
            "replay": to_plain(facts.replay),
            "recording": to_plain(facts.recording),
            "records": RECORD in self._ctx.answers,
        }
