"""The server of a lab in a process of its own."""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from manyworlds.lab.errors import VerbError
from manyworlds.lab.readers.reader_process import ProcessEndedError, ReaderProcess
from manyworlds.lab.readers.wire import Message
from manyworlds.lab.server.config import LabServerCfg
from manyworlds.lab.server.loss import leave_in_order
from manyworlds.utils.extras import check_extra

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_LOG = logging.getLogger(__name__)

_MOST_RESTARTS = 5
_RESTARTS_S = 60.0
"""Most restarts of the process within a time [s]."""


class HubProcess(ReaderProcess):
    """A `LabHub` in a process of its own, which outlives the lab; it starts at once.

    Sockets, encoding and the search for what a request means take nothing from the steps: the
    process reads snapshots from shared memory, and sends verbs, which enter by the lab's queue. If
    it ends by itself, it is started again at the same ports, at most five times a minute; the log
    and the page say so. The mode and the targets of the lab are then as after the loss of a client
    that drove, and clients have to drive again.

    Args:
        cfg: settings; not modified.
        report: receives sentences for people: ports in use, bad messages.

    Raises:
        MissingExtraError: the extra 'net' is not installed.
    """

    def __init__(
        self,
        cfg: LabServerCfg | None = None,
        report: Callable[[str], None] = _LOG.warning,
    ) -> None:
        check_extra("zmq", "net")
        check_extra("msgpack", "net")
        self.cfg = LabServerCfg() if cfg is None else cfg
        self.reports: deque[str] = deque(maxlen=100)
        """Sentences that were reported, the newest last."""
        self._report = report
        self._status: dict[str, Any] = {}
        self._lab: LiveLab | None = None
        self._problem = ""
        self._pages: list[str] = []
        self._known_ports: dict[str, int] = {}
        """Ports of the first process; empty until it was ready."""
        self._settings = {"server": self.cfg.to_plain(), "lab_id": str(uuid.uuid4())}
        self._turn = threading.RLock()
        """Held while a lab is shown, and while a process is started in place of another one."""
        self._starting = threading.Lock()
        """Held while a process is started, so that `close` ends the newest one."""
        self._restarter: threading.Thread | None = None
        self._restarts: deque[float] = deque(maxlen=_MOST_RESTARTS)
        """Times of the newest restarts [s]."""
        module = str(__package__)
        super().__init__(module, "server for programs", self._settings)

    def __enter__(self) -> HubProcess:
        """Wait until the ports are open, or one is in use."""
        self.wait_until_ready()
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self.close()

    @property
    def ports(self) -> dict[str, int]:
        """Ports by their use; waits for the start."""
        return self.wait_until_ready()["ports"]

    @property
    def greeting(self) -> str:
        """Sentences about who reaches the lab where; waits for the start."""
        said = self.wait_until_ready()
        cfg = self.cfg
        text = f"programs on this machine: {_named(said, secure=False)}"
        if cfg.listen:
            text += (
                f"\nprograms on other machines, at {cfg.listen}: "
                f"{_named(said, secure=True)}; they need a copy of {said['client_file']}\n"
                "the other ports cannot authenticate, and stay on this machine"
            )
        return text

    @property
    def place(self) -> str:
        """The port of requests; empty while it is not known."""
        if self._ready is None:
            return ""
        return f"port {self._ready['ports']['step']}"

    def attach(self, lab: LiveLab | None) -> None:
        """Serve a lab, or none for now; clients stay connected, and their sessions open.

        A process that has ended by itself shows it when it was started again.

        Raises:
            ProcessEndedError: the first process ended before it was ready.
        """
        with self._turn:
            self._lab = lab
            if lab is not None:
                lab.server.show(self)
            try:
                if lab is None:
                    self._leave()
                else:
                    self.show(lab)
            except ProcessEndedError:
                if not self._known_ports:
                    raise
                # The log has it, and the next process shows the lab.

    def close(self) -> None:
        """End the process; a second call does nothing."""
        with self._starting:
            self._closing = True
        super().close()
        if self._restarter is not None:
            self._restarter.join()

    def describe(self) -> dict[str, object]:
        """Return ports, clients, counters and reports as plain data, half a second old."""
        if not self._problem:
            return self._status
        problems = self._status.get("problems", [])
        return {**self._status, "problems": [self._problem, *problems]}

    def allow_page(self, url: str) -> None:
        """Let the lab's page use the WebSocket."""
        self._pages.append(url)
        self._tell("allow_page", url=url)

    def release_driver(self, reason: str) -> None:
        """Let the client that drives observe from now on; see `LabHub.release_driver`."""
        self._tell("release_driver", reason=reason)

    def wait_until_ready(self) -> Message:
        """Wait until the program has started, and return what it said then."""
        said = super().wait_until_ready()
        self._known_ports = said["ports"]
        return said

    def _leave(self) -> None:
        self.wait_until_ready()
        assert self._link is not None
        self._tell("no_lab")
        self._wait("left")
        self._link.hide()

    def hear(self, message: Message) -> bool:
        """Note the state of the server, or a sentence for people."""
        match message["tell"]:
            case "status":
                self._status = message["status"]
            case "report":
                self.reports.append(message["text"])
                self._report(message["text"])
            case _:
                return False
        return True

    def ended(self, reason: str) -> None:
        """Leave the world as after the loss of the client that drove, and start the server again.

        A process that ended before it was ready the first time is not started again.
        """
        self._problem = reason
        lab = self._lab
        status = self._status
        self._status = {}
        try:
            if lab is not None and status.get("driver"):
                zero = self.cfg.on_loss == "zero"
                leave_in_order(lab, str(status["mode_before"]), zero, status["held"])
        except VerbError as error:
            _LOG.warning("After the end of the server for programs: %s", error)
        if self._known_ports:
            self._restarter = threading.Thread(
                target=self._restart, args=(reason,), name="manyworlds-restart", daemon=True
            )
            self._restarter.start()

    def _restart(self, reason: str) -> None:
        """Start the process again at the ports that it had, and show it the lab."""
        with self._turn:
            now = time.monotonic()
            if len(self._restarts) == _MOST_RESTARTS and now - self._restarts[0] < _RESTARTS_S:
                self._problem = (
                    f"{reason} It is not started again, because it has ended {_MOST_RESTARTS + 1} "
                    f"times within {_RESTARTS_S:g} s: close the lab and start it again."
                )
                _LOG.error("%s", self._problem)
                return
            self._restarts.append(now)
            used = {f"{use}_port": self._known_ports.get(use, 0) for use in self.cfg.ports}
            fixed = {use: number for use, number in used.items() if number}
            server = dataclasses.replace(self.cfg, **fixed).to_plain()
            with self._starting:
                if self._closing:
                    return
                if self._link is not None:
                    self._link.close()
                    self._link.hide()
                self._start({**self._settings, "server": server, "keep_owners": True})
            try:
                self.wait_until_ready()
                for url in self._pages:
                    self._tell("allow_page", url=url)
                if self._lab is not None:
                    self.show(self._lab)
            except ProcessEndedError:
                return  # the log has it, and the next process is started
            except (RuntimeError, ValueError) as error:
                self._problem = f"{reason} It cannot be started again: {error}"
                _LOG.error("%s", self._problem)
                return
            self._problem = (
                f"{reason.partition(';')[0]}, and was started again; programs that drove have to "
                "take the world again."
            )
            self._report(self._problem)


def _named(said: Mapping[str, Any], secure: bool) -> str:
    """Return the ports of this machine, or those for others, as text."""
    mark = "secure "
    return ", ".join(
        f"{use.removeprefix(mark)} {port}{' (in use)' * (use in said['waiting'])}"
        for use, port in said["ports"].items()
        if use.startswith(mark) == secure
    )
