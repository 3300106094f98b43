"""Start of a program that reads a lab, and the lab's end of the link to it."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from manyworlds.lab.readers.wire import Message, Wire
from manyworlds.utils.extras import MissingExtraError
from manyworlds.utils.platforms import describe_exit

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab
    from manyworlds.lab.readers.link import LabLink

_LOG = logging.getLogger(__name__)
_START_S = 120.0
_CLOSE_S = 5.0


class ProcessEndedError(RuntimeError):
    """The program's process has ended."""


class ReaderProcess:
    """A `ReaderProgram` in a process of its own; it starts at once, beside what the caller does.

    If the process ends by itself, a message of the log says so, and the lab keeps running.

    Args:
        module: module of the program, which `python -m` runs.
        noun: word for the program in messages.
        settings: content of the first message, `settings`.
        environment: environment variables of the program, besides those of this process.

    Raises:
        RuntimeError: the operating system lacks what such a process needs.
    """

    def __init__(
        self,
        module: str,
        noun: str,
        settings: Mapping[str, object],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        _check_descriptors(noun)
        self._module = module
        self._noun = noun
        self._environment = dict(environment or {})
        self._closing = False
        self._start(settings)

    def _start(self, settings: Mapping[str, object]) -> None:
        """Start the process, perhaps in place of one that has ended."""
        self._answers: queue.Queue[Message] = queue.Queue()
        self._ready: Message | None = None
        self._link: LabLink | None = None
        near, far = socket.socketpair()
        self._wire = Wire(near)
        with far:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", self._module, str(far.fileno())],
                pass_fds=[far.fileno()],
                env={
                    **os.environ,
                    **self._environment,
                    "PYTHONPATH": os.pathsep.join(import_paths()),
                },
            )
            """The program's process."""
        self._wire.send({"event": "settings", **settings})

    @property
    def is_alive(self) -> bool:
        """True while the process runs."""
        return self.process.poll() is None

    @property
    def place(self) -> str:
        """Words for where the program can be reached, for messages; empty if not known."""
        return ""

    def wait_until_ready(self) -> Message:
        """Wait until the program has started, and return what it said then.

        Raises:
            ValueError: it cannot start with these settings.
            ProcessEndedError: the process ended.
        """
        if self._ready is None:
            self._connect()
            self._ready = self._wait("ready")
        return self._ready

    def show(self, lab: LiveLab) -> None:
        """Show a lab in place of the one before, and wait until the program has taken it.

        Raises:
            ValueError: the program does not take this world.
            ProcessEndedError: the process ended.
        """
        self.wait_until_ready()
        assert self._link is not None
        with contextlib.suppress(OSError):  # `_wait` has the reason
            self._link.show(lab)
        self._wait("shown")

    def close(self) -> None:
        """End the process; a second call does nothing."""
        self._closing = True
        self.process.terminate()
        self._wait_for_end()
        if self._link is not None:
            self._link.close()
        self._wire.close()

    def hear(self, message: Message) -> bool:
        """Take a message of the program, in the link's thread; return False if it is unknown."""
        return False

    def ended(self, reason: str) -> None:
        """Note that the process has ended by itself, in the link's thread.

        Args:
            reason: one sentence, which is in the log already.
        """

    def _tell(self, event: str, descriptor: int | None = None, **fields: object) -> None:
        self._connect()
        assert self._link is not None
        self._link.tell(event, descriptor, **fields)

    def _connect(self) -> None:
        """Create the link; the first use loads the verbs, which takes longer than the start."""
        if self._link is None:
            from manyworlds.lab.readers.link import LabLink

            self._link = LabLink(self._wire, self._hear, self._end)

    def _hear(self, message: Message) -> None:
        if message["tell"] == "failed" and self._ready is None:
            self._closing = True  # without a start, the process ends after this message
        if not self.hear(message):
            self._answers.put(message)

    def _end(self) -> None:
        """Note the end of the process."""
        self._answers.put({"tell": "ended"})
        if not self._closing:
            code = self._wait_for_end()
            ending = describe_exit(code)
            at = f" at {self.place}" if self.place else ""
            text = f"The {self._noun}{at} has ended ({ending}); the lab goes on without it."
            _LOG.error("%s", text)
            self.ended(text)

    def _wait_for_end(self) -> int:
        """Return the exit code of the process, which may be at its end."""
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
        failure = f"The {self._noun} could not be served"
        if answer["tell"] != "failed":
            self._answers.put(answer)  # for further calls
            raise ProcessEndedError(f"{failure}: its process has ended.")
        text = str(answer["text"])
        if answer["error"] == MissingExtraError.__name__:
            raise MissingExtraError(text)
        if answer["is_input"]:
            raise ValueError(text)
        raise RuntimeError(f"{failure}: {answer['error']}: {text}")


def _check_descriptors(noun: str) -> None:
    """Check that processes can give each other file descriptors: the shared memory is one.

    Raises:
        RuntimeError: they cannot on this operating system.
    """
    if not hasattr(socket, "send_fds"):
        raise RuntimeError(
            f"The {noun} of a live world needs file descriptors that processes give each other, "
            f"which {sys.platform} does not have: use WSL 2, or run the world without it "
            "(--headless)."
        )


def import_paths() -> list[str]:
    """Return the folders of this process's modules, so that the program finds the same ones."""
    return [path or os.getcwd() for path in sys.path]
