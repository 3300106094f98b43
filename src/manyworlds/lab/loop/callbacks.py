"""Functions of clients that a loop calls, and reports of those that fail."""

from __future__ import annotations

import logging
import traceback
from collections import deque
from collections.abc import Callable

import mujoco

Callback = Callable[[mujoco.MjModel, mujoco.MjData, bool], None]
"""Called with the model, the data, and whether the world was advanced."""

_LOG = logging.getLogger(__name__)


class Handle:
    """Registered callback, which `remove` unregisters."""

    def __init__(self, callbacks: list[Handle], call: Callback) -> None:
        self.call = call
        self._callbacks = callbacks

    def remove(self) -> None:
        """Unregister the callback; a second call does nothing."""
        if self in self._callbacks:
            self._callbacks.remove(self)


def register(callbacks: list[Handle], call: Callback) -> Handle:
    """Add a callback to a list."""
    handle = Handle(callbacks, call)
    callbacks.append(handle)
    return handle


def is_ours(code: object) -> bool:
    """Return True if a function or a class is of this package, and not of a client."""
    return str(getattr(code, "__module__", "")).startswith("manyworlds.")


class CallbackReports:
    """Failures of callbacks: each is logged when it first occurs, and counted."""

    def __init__(self) -> None:
        self.tracebacks: deque[str] = deque(maxlen=20)
        """Tracebacks, the newest last."""
        self._counts: dict[str, int] = {}
        self._lines: dict[str, str] = {}

    @property
    def lines(self) -> list[str]:
        """One sentence for each callback that failed since `clear`."""
        return list(self._lines.values())

    def clear(self) -> None:
        """Forget the sentences; the tracebacks stay."""
        self._counts.clear()
        self._lines = {}

    def attempt(self, call: Callable[..., object], *args: object) -> None:
        """Call a function; report an error instead of raising it."""
        try:
            call(*args)
        except Exception as error:
            self.tracebacks.append(traceback.format_exc())
            name = getattr(call, "__qualname__", type(call).__name__)
            count = self._counts[name] = self._counts.get(name, 0) + 1
            if count == 1:
                _LOG.exception("The callback '%s' failed; it is called again.", name)
            times = "once" if count == 1 else f"{count} times"
            line = f"The callback '{name}' failed {times}: {type(error).__name__}: {error}"
            self._lines = {**self._lines, name: line}
