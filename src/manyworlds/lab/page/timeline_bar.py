"""Timeline at the bottom of the page: the last seconds, single steps, and branches."""

from __future__ import annotations

from typing import Any

from manyworlds.lab.facts import to_plain
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_boxes import BoxPart
from manyworlds.lab.page.page_context import PageContext

_MARGIN_S = 0.3  # the oldest moments, which may be dropped before the world is paused


class TimelinePart(BoxPart):
    """Gives the bar in browsers the state of the timeline, and carries out what it asks for.

    Args:
        ctx: context of the page.
        address: address of the page's own WebSocket, see `DrivePart`.
    """

    period = 0.1

    def __init__(self, ctx: PageContext, address: str) -> None:
        super().__init__(ctx)
        self._state = ctx.lab.facts.timeline
        self._add_box("timeline_box", address)
        ctx.answers["timeline"] = self._answer

    def step(self, num_frames: int) -> None:
        """Show an earlier or later moment."""
        self._ctx.verbs.timeline_step(n_frames=num_frames)

    def update(self, snapshot: Snapshot) -> None:
        """Take over how far back the world can go, what happened when, and what is shown."""
        self._state = self._ctx.lab.facts.timeline

    def _answer(self, browser: str, message: dict[str, Any]) -> dict[str, object]:
        """Carry out what a browser asks for, if anything, and return the state of the timeline.

        Args:
            browser: name of the browser.
            message: `seek`, the time before now [s]; `step`, a number of moments; or True for
                `branch`, `leave` or `swap`.
        """
        verbs = self._ctx.verbs
        shown: dict[str, object] = {}
        if "seek" in message:
            most = max(0.0, self._state.duration_s - _MARGIN_S)
            moment = verbs.timeline_seek(ago=min(max(0.0, float(message["seek"])), most))
            shown = {"is_active": True, **moment}
        elif "step" in message:
            shown = {"is_active": True, **verbs.timeline_step(n_frames=message["step"])}
        actions = {
            "branch": verbs.timeline_branch,
            "leave": verbs.timeline_leave,
            "swap": verbs.timeline_swap,
        }
        for name, action in actions.items():
            if name in message:
                action()
                shown = {"is_active": False, "ago": 0.0}
        return {"timeline": {**to_plain(self._state), **shown}}
