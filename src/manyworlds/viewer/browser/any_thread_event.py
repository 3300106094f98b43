"""Event that any thread may set, for the messages of viser's pages."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
from typing import Any, Literal


class AnyThreadEvent(asyncio.Event):
    """Event of an asyncio loop that other threads may set; only the loop wakes those that wait.

    Another thread must also ask the loop to call `set`: its own call only makes `is_set` true.
    """

    def __init__(self) -> None:
        super().__init__()
        self._early = False

    def set(self) -> None:
        """Make the event true; in the loop's thread, wake those that wait for it."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self._early = True
        else:
            super().set()

    def is_set(self) -> bool:
        """Return True from `set` to `clear`."""
        return self._early or super().is_set()

    def clear(self) -> None:
        """Make the event false."""
        self._early = False
        super().clear()

    async def wait(self) -> Literal[True]:
        """Wait until the event is true."""
        if self._early:
            return True
        return await super().wait()


@functools.cache
def use_any_thread_events() -> None:
    """Let all pages of this program take messages from any thread.

    With each message that a program sends, viser 1.1 sets an event of its loop in the program's own
    thread, too. If the loop begins or ends to wait for it at that moment, `asyncio.Event` raises
    "deque mutated during iteration" in the program, whose page then stops.
    """
    with contextlib.suppress(ImportError, AttributeError):  # another viser, with other internals
        infra: Any = importlib.import_module("viser.infra._infra")
        known: Any = infra.AsyncMessageBuffer

        class Buffer(known):
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **kwargs)
                self.message_event = AnyThreadEvent()

        infra.AsyncMessageBuffer = Buffer
