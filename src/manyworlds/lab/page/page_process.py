"""Start of the program that serves a page, and the lab's end of the link to it."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from manyworlds.lab.page.tabs import Tabs, name_parts
from manyworlds.lab.wire import Message, Wire
from manyworlds.utils.extras import MissingExtraError, check_extra

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab
    from manyworlds.lab.link import LabLink

_LOG = logging.getLogger(__name__)
_START_S = 120.0
_CLOSE_S = 5.0


class PageProcess:
    """A page in a process of its own; it starts at once, beside what the caller does next.

    If the page's process ends by itself, a message of the log says so, and the lab goes on.

    Args:
        page: arguments of `PageShell`: `host`, `port` ...
        tabs: parts of each tab, as classes or by name `module:Class`.
        on_reload: called by the page's button *Reload*; None for no button.

    Raises:
        MissingExtraError: the extra 'lab' is not installed.
        ValueError: another process cannot import a part.
    """

    def __init__(
        self,
        page: Mapping[str, object],
        tabs: Tabs,
        on_reload: Callable[[], None] | None = None,
    ) -> None:
        check_extra("viser", "lab")
        names = name_parts(tabs)
        self.errors: list[str] = []
        """Tracebacks of parts that failed; these are not updated any more."""
        self._url = ""
        self._on_reload = on_reload
        self._answers: queue.Queue[Message] = queue.Queue()
        self._closing = False
        self._link: LabLink | None = None
        near, far = socket.socketpair()
        self._wire = Wire(near)
        with far:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", str(__package__), str(far.fileno())],
                pass_fds=[far.fileno()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(_import_paths())},
            )
            """The page's process."""
        reloads = on_reload is not None
        self._wire.send({"event": "settings", "page": page, "tabs": names, "reloads": reloads})

    @property
    def url(self) -> str:
        """The address of the page; waits until it is served.

        Raises:
            ValueError: this machine cannot serve at the address that was asked for.
            RuntimeError: the page's process ended.
        """
        if not self._url:
            self._connect()
            self._url = self._wait("ready")["url"]
        return self._url

    @property
    def is_alive(self) -> bool:
        """True while the page's process runs."""
        return self.process.poll() is None

    def show(self, lab: LiveLab) -> None:
        """Show a lab in place of the one before, and wait until the page has all of its parts."""
        assert self.url and self._link is not None
        with contextlib.suppress(OSError):  # `_wait` has the reason
            self._link.show(lab)
        self._wait("shown")

    def start(self) -> None:
        """Keep the page up to date from now on, while a browser is connected."""
        self._tell("start")

    def look_at(self, body: int, *, follow: bool) -> None:
        """Point all cameras at a body, or let them follow it; see `InProcessPage.look_at`."""
        self._tell("look_at", body=body, follow=follow)

    def show_card(self, title: str, text: str) -> None:
        """Show an error at the top of the page; none if the text is empty."""
        self._tell("card", title=title, text=text)

    def close(self) -> None:
        """End the page's process; a second call does nothing."""
        self._closing = True
        self.process.terminate()
        self._wait_for_end()
        if self._link is not None:
            self._link.close()
        self._wire.close()

    def _tell(self, event: str, **fields: object) -> None:
        self._connect()
        assert self._link is not None
        self._link.tell(event, **fields)

    def _connect(self) -> None:
        """Create the link; the first use loads the verbs, which takes longer than the start."""
        if self._link is None:
            from manyworlds.lab.link import LabLink

            self._link = LabLink(self._wire, self._hear, self._end)

    def _hear(self, message: Message) -> None:
        match message["tell"]:
            case "part_failed":
                self.errors.append(message["text"])
            case "reload":
                assert self._on_reload is not None and self._link is not None
                # Not in the thread of the link, which the new lab needs.
                self._link.submit(self._on_reload)
            case _:
                self._answers.put(message)

    def _end(self) -> None:
        """Note the end of the page's process."""
        self._answers.put({"tell": "ended"})
        if not self._closing:
            code = self._wait_for_end()
            ending = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            place = f" at {self._url}" if self._url else ""
            _LOG.error("The page%s has ended (%s); the lab goes on without it.", place, ending)

    def _wait_for_end(self) -> int:
        """Return the exit code of the page's process, which may be at its end."""
        try:
            return self.process.wait(_CLOSE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def _wait(self, what: str) -> Message:
        try:
            answer = self._answers.get(timeout=_START_S)
        except queue.Empty:
            answer = {"tell": "ended"}
        if answer["tell"] == what:
            return answer
        if answer["tell"] != "failed":
            self._answers.put(answer)  # for further calls
            raise RuntimeError("The page could not be served: its process has ended.")
        text = str(answer["text"])
        self._closing = self._closing or not self._url  # the process ends, after this message
        if answer["error"] == MissingExtraError.__name__:
            raise MissingExtraError(text)
        if answer["error"] == "ValueError":
            raise ValueError(text)
        raise RuntimeError(f"The page could not be served: {answer['error']}: {text}")


def _import_paths() -> list[str]:
    """Return the folders of this process's modules, so that the page finds the same ones."""
    return [path or os.getcwd() for path in sys.path]
