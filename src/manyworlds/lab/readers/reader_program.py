"""Program that reads a lab of another process, which starts it, and is its parent."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import socket
import sys
import traceback
from collections.abc import Callable

from manyworlds.lab.errors import LabEndedError
from manyworlds.lab.readers.remote_lab import RemoteLab
from manyworlds.lab.readers.wire import Message, Wire
from manyworlds.utils.extras import MissingExtraError
from manyworlds.utils.garbage import gc_paused
from manyworlds.utils.platforms import lower_priority

_NICENESS = 5
"""Difference of the priority from that of the lab, whose steps have a time to keep."""
_PARENT_S = 1.0  # period in which the program looks for its parent


class ReaderProgram:
    """Does what the lab's process says, until that ends.

    Args:
        wire: wire to the lab's process.
    """

    def __init__(self, wire: Wire) -> None:
        self._events: queue.Queue[Message] = queue.Queue()
        self._parent = os.getppid()
        self._is_nice = False
        self.lab = RemoteLab(wire, self._events.put)

    def open(self, settings: Message) -> dict[str, object]:
        """Start, and return what the lab's process is to know then.

        Raises:
            ValueError: the settings are not possible.
        """
        raise NotImplementedError

    def show(self) -> None:
        """Show `lab`, which is another one than before.

        Raises:
            ValueError: this world cannot be shown.
        """
        raise NotImplementedError

    def take(self, message: Message) -> bool:
        """Carry out another event; return False if it is unknown."""
        return False

    def close(self) -> None:
        """Say goodbye, after the lab has ended."""

    def release(self) -> None:
        """Release what outlives the process, such as files; also after SIGTERM."""

    def run(self) -> None:
        """Serve until the lab ends."""
        settings = self._next()
        if settings["event"] != "settings":
            return
        if not self._attempt(lambda: self.lab.tell("ready", **self.open(settings))):
            return
        while (message := self._next())["event"] != "ended":
            if message["event"] == "lab":
                self._attempt(self._show)
            elif not self.take(message):
                raise ValueError(f"There is no event '{message['event']}'.")
        self.close()

    def _show(self) -> None:
        with gc_paused():
            self.show()
        self.lab.tell("shown")
        if not self._is_nice:  # the start should not take long
            self._is_nice = True
            lower_priority(_NICENESS)

    def _attempt(self, action: Callable[[], None]) -> bool:
        """Return False if an action fails; the lab's process gets the error."""
        try:
            action()
        except LabEndedError:
            return False
        except Exception as error:
            is_input = isinstance(error, ValueError | MissingExtraError)
            if not is_input:
                traceback.print_exc()
            name = type(error).__name__
            text = str(error)
            self.lab.tell("failed", error=name, text=text, is_input=is_input)
            return False
        return True

    def _next(self) -> Message:
        """Wait for an event of the lab, or for its end."""
        while os.getppid() == self._parent:
            try:
                return self._events.get(timeout=_PARENT_S)
            except queue.Empty:
                continue  # look for the parent again: the wire may be open in another child of it
        return {"event": "ended"}


def run_program(program: type[ReaderProgram]) -> None:
    """Run a program until SIGTERM; the only argument is the file descriptor of the wire."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the lab, which ends its readers
    reader = program(Wire(socket.socket(fileno=int(sys.argv[1]))))
    signal.signal(signal.SIGTERM, _leave)
    with contextlib.suppress(SystemExit):
        reader.run()
    reader.release()
    sys.stdout.flush()
    os._exit(0)  # without waiting for threads


def _leave(*_: object) -> None:
    """Interrupt the main thread, once."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit
