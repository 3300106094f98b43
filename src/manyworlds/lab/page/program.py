"""Program that serves the page of a lab; the lab's process starts it, and is its parent."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from manyworlds.lab.page.page_shell import PageShell
from manyworlds.lab.page.tabs import find_parts
from manyworlds.lab.remote_lab import RemoteLab
from manyworlds.lab.verb_error import LabEndedError
from manyworlds.lab.wire import Message, Wire
from manyworlds.utils.extras import MissingExtraError

_NICENESS = 5
"""Difference of the priority from that of the lab, whose steps have a time to keep."""
_PARENT_S = 1.0  # period in which the program looks for its parent
_FAREWELL_S = 1.0  # time for browsers to get the last message


class PageProgram:
    """Serves the page, and does what the lab's process says.

    Args:
        wire: wire to the lab's process.
    """

    def __init__(self, wire: Wire) -> None:
        self._events: queue.Queue[Message] = queue.Queue()
        self._shell: PageShell | None = None
        self._parent = os.getppid()
        self._is_nice = False
        self._lab = RemoteLab(wire, self._events.put)

    def run(self) -> None:
        """Serve the page until the lab ends."""
        settings = self._next()
        if settings["event"] != "settings":
            return
        if not self._attempt(lambda: self._open(settings)):
            return
        while (message := self._next())["event"] != "ended":
            self._handle(message)
        self._say_goodbye()

    def _open(self, settings: dict[str, Any]) -> None:
        for names in settings["tabs"].values():
            find_parts(names)  # a wrong name fails before the page has an address
        self._shell = PageShell(
            (lambda: self._lab.tell("reload")) if settings["reloads"] else None,
            lambda name, text: self._lab.tell("part_failed", name=name, text=text),
            tabs=settings["tabs"],
            **settings["page"],
        )
        self._lab.tell("ready", url=self._shell.url)

    def _handle(self, message: Message) -> None:
        shell = self._shell
        assert shell is not None
        match message["event"]:
            case "lab":
                self._attempt(lambda: self._show(shell))
            case "start":
                shell.start()
            case "look_at":
                assert shell.page is not None, "a lab is shown"
                shell.page.look_at(message["body"], follow=message["follow"])
            case "card":
                shell.show_card(message["title"], message["text"])
            case _:
                raise ValueError(f"The page has got an unknown message: {message['event']}.")

    def _show(self, shell: PageShell) -> None:
        shell.end_page()
        self._lab.sync_model()
        shell.show(self._lab)
        self._lab.tell("shown")
        if not self._is_nice:  # the first picture should come soon
            self._is_nice = True
            _lower_priority()

    def _attempt(self, action: Callable[[], None]) -> bool:
        """Return False if an action fails; the lab's process gets the error."""
        try:
            action()
        except LabEndedError:
            return False
        except Exception as error:
            if not isinstance(error, ValueError | MissingExtraError):  # not the user's mistake
                traceback.print_exc()
            self._lab.tell("failed", error=type(error).__name__, text=str(error))
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

    def _say_goodbye(self) -> None:
        if self._shell is not None:
            self._shell.show_card("The lab has ended", str(LabEndedError()))
            time.sleep(_FAREWELL_S)


def _lower_priority() -> None:
    """Lower the priority of all threads; on Linux, each has its own."""
    priority = os.getpriority(os.PRIO_PROCESS, 0) + _NICENESS
    linux = sys.platform == "linux"
    for thread in threading.enumerate() if linux else (threading.main_thread(),):
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.setpriority(os.PRIO_PROCESS, (thread.native_id or 0) if linux else 0, priority)


def main() -> None:
    """Serve a page until SIGTERM; the only argument is the file descriptor of the wire."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the lab, which closes its page
    PageProgram(Wire(socket.socket(fileno=int(sys.argv[1])))).run()
    sys.stdout.flush()
    os._exit(0)  # without waiting for threads of browsers
