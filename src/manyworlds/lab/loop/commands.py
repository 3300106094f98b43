"""Commands that change a world: a queue in order, and futures that know when readers see them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import mujoco

from manyworlds.lab.loop.snapshot import Snapshot

_T = TypeVar("_T")


class CommandFuture(Future[_T]):
    """Result of a command; it is done when a snapshot that contains the command's effect exists."""

    frame_id = -1
    """Number of the first snapshot that contains the effect; -1 before the future is done."""


@dataclass(eq=False)
class Command(Generic[_T]):
    """Function that reads or changes a world in the physics thread."""

    call: Callable[[mujoco.MjModel, mujoco.MjData], _T]
    edits_model: bool
    """True if it may change the model, so that copies of the model are outdated after it."""
    future: CommandFuture[_T] = field(default_factory=CommandFuture)
    _result: Any = None
    _error: Exception | None = None

    @property
    def name(self) -> str:
        """Name of the function, for messages."""
        return getattr(self.call, "__qualname__", type(self.call).__name__)

    def run(self, model: mujoco.MjModel, data: mujoco.MjData) -> bool:
        """Call the function; return False if the future was cancelled before."""
        if not self.future.set_running_or_notify_cancel():
            return False
        try:
            self._result = self.call(model, data)
        except Exception as error:
            self._error = error
        return True

    def finish(self, frame_id: int) -> None:
        """Give the outcome of `run` to the future: a snapshot shows it now."""
        self.future.frame_id = frame_id
        if self._error is None:
            self.future.set_result(self._result)
        else:
            self.future.set_exception(self._error)


@dataclass(eq=False)
class StepRequest:
    """Steps that a caller waits for."""

    left: int
    future: Future[Snapshot] = field(default_factory=Future)


_Item = TypeVar("_Item", Command[Any], StepRequest)


class _Queue(Generic[_Item]):
    """Queue until it is closed; its methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[_Item] = deque()
        self._closed = False

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @property
    def is_closed(self) -> bool:
        """True if it takes nothing any more."""
        return self._closed

    def put(self, item: _Item) -> None:
        """Add an item.

        Raises:
            RuntimeError: the queue was closed.
        """
        with self._lock:
            if self._closed:
                raise RuntimeError("The loop was stopped and takes no commands: create a new one.")
            self._waiting.append(item)

    def close(self) -> list[Future]:
        """Take nothing any more; return the futures of what waits."""
        with self._lock:
            self._closed = True
            waiting: list[Future] = [item.future for item in self._waiting]
            self._waiting.clear()
        return waiting


class CommandQueue(_Queue[Command[Any]]):
    """Queue of commands."""

    def take(self) -> deque[Command]:
        """Remove and return all waiting commands, in their order."""
        if not self._waiting:
            return deque()
        with self._lock:
            waiting, self._waiting = self._waiting, deque()
        return waiting


class StepQueue(_Queue[StepRequest]):
    """Queue of requests for steps."""

    @property
    def first(self) -> StepRequest:
        """The request that waits longest."""
        return self._waiting[0]

    def remove(self, request: StepRequest) -> bool:
        """Remove a request; return False if it is not in the queue any more."""
        with self._lock:
            if request not in self._waiting:
                return False
            self._waiting.remove(request)
        return True
