"""The server of a lab in a process of its own."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from manyworlds.lab.network.config import LabServerCfg
from manyworlds.lab.network.loss import leave_in_order
from manyworlds.lab.reader_process import ReaderProcess
from manyworlds.lab.verb_error import VerbError
from manyworlds.lab.wire import Message
from manyworlds.utils.extras import check_extra

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_LOG = logging.getLogger(__name__)


class HubProcess(ReaderProcess):
    """A `LabHub` in a process of its own, which outlives the lab; it starts at once.

    Sockets, encoding and the search for what a request means take nothing from the steps: the
    process reads snapshots from shared memory, and sends verbs, which enter by the lab's queue. If
    it ends by itself, a message of the log and the page say so, and the lab goes on: its mode and
    the targets are as after the loss of a client that drove.

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
        module = str(__package__)
        super().__init__(module, "server for programs", {"server": self.cfg.to_plain()})

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
        said, cfg = self.wait_until_ready(), self.cfg
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
        return f"port {self._ready['ports']['step']}" if self._ready is not None else ""

    def attach(self, lab: LiveLab | None) -> None:
        """Serve a lab, or none for now; clients stay connected, and their sessions open.

        Nothing happens after the process has ended by itself.

        Raises:
            RuntimeError: the process ended before it was ready.
        """
        self.wait_until_ready()
        self._lab = lab
        if lab is not None:
            lab.server.show(self)
        try:
            self._leave() if lab is None else self.show(lab)
        except RuntimeError:
            if not self._problem:  # the log has it
                raise

    def describe(self) -> dict[str, object]:
        """Return ports, clients, counters and reports as plain data, half a second old."""
        return {**self._status, "problems": [self._problem]} if self._problem else self._status

    def allow_page(self, url: str) -> None:
        """Let the lab's page use the WebSocket."""
        self._tell("allow_page", url=url)

    def release_driver(self, reason: str) -> None:
        """Let the client that drives observe from now on; see `LabHub.release_driver`."""
        self._tell("release_driver", reason=reason)

    def _leave(self) -> None:
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
        """Leave the world as after the loss of the client that drove."""
        self._problem = reason
        lab = self._lab
        if lab is None or not self._status.get("driver"):
            return
        try:
            zero = self.cfg.on_loss == "zero"
            leave_in_order(lab, str(self._status["mode_before"]), zero, self._status["held"])
        except VerbError as error:
            _LOG.warning("After the end of the server for programs: %s", error)


def _named(said: Mapping[str, Any], secure: bool) -> str:
    """Return the ports of this machine, or those for others, as text."""
    mark = "secure "
    return ", ".join(
        f"{use.removeprefix(mark)} {port}{' (in use)' * (use in said['waiting'])}"
        for use, port in said["ports"].items()
        if use.startswith(mark) == secure
    )
