"""A slider over the frames of a motion, in a viewer's page."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

_FOLLOW_SECONDS = 0.2
_HOLD_SECONDS = 1.0


class MotionScrubber:
    """Shows in which frame the selected world is, and lets one ask for another.

    Args:
        name: of the command.
        num_frames: how many frames the motion has.
        frame_of: tells the present frame of a world.
        server: of the page.
        get_env_idx: tells the selected world.
        on_change: called when a frame was asked for.
        request_action: has a viewer carry out what was asked for at once, also while it is paused.
    """

    def __init__(
        self,
        name: str,
        num_frames: int,
        frame_of: Callable[[int], int],
        server: Any,
        get_env_idx: Callable[[], int],
        on_change: Callable[[], None] | None = None,
        request_action: Callable[[str, Any], None] | None = None,
    ) -> None:
        self._frame_of, self._get_env_idx = frame_of, get_env_idx
        self._asked: tuple[int, int] | None = None
        self._next = 0.0
        self._slider = server.gui.add_slider(f"Frame of '{name}'", 0, num_frames - 1, 1, 0)

        @self._slider.on_update
        def _(event: Any) -> None:
            if event.client is None:  # `follow` moved it
                return
            # Carried out where worlds are stepped, which is another thread.
            self._asked = (get_env_idx(), int(self._slider.value))
            # A slider that somebody drags is not to be moved under their hand.
            self._next = time.perf_counter() + _HOLD_SECONDS
            if request_action is not None:
                request_action("custom", ("gui_reset",))
            if on_change is not None:
                on_change()

    def take(self) -> tuple[int, int] | None:
        """Return the world and the frame that were asked for, once."""
        asked, self._asked = self._asked, None
        return asked

    def follow(self) -> None:
        """Move the slider to where the selected world is, a few times a second."""
        now = time.perf_counter()
        if now >= self._next and self._asked is None:
            self._next = now + _FOLLOW_SECONDS
            self._slider.value = self._frame_of(self._get_env_idx())
