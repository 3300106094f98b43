"""Socket that answers requests."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from manyworlds.lab.server.operations import NotYetError

if TYPE_CHECKING:
    from manyworlds.lab.server.hub import LabHub
    from manyworlds.lab.server.ports import Port

_IDLE_S = 0.05  # longest wait for a request
_AGAIN_S = 0.005  # longest wait while a request waits for its answer
_PATIENCE_S = 4.0  # longest wait for an answer that is being prepared; old clients wait 5 s


class _Asked(NamedTuple):
    """A request, who waits for the answer, and when it came [s]."""

    sender: bytes
    content: bytes
    peer: int
    came: float


class RequestServer:
    """Socket of requests: like a REP socket, but one client does not wait for another's bytes.

    Args:
        hub: the hub.
        port: its port, a `ROUTER` socket.
    """

    def __init__(self, hub: LabHub, port: Port) -> None:
        self._hub = hub
        self._zmq = hub.zmq
        self.port = port
        self.ports = [port]
        monitored = self._zmq.EVENT_DISCONNECTED
        self._monitor = port.socket.get_monitor_socket(monitored)
        self._later: list[_Asked] = []

    def run_once(self) -> None:
        """Answer the requests that wait, or wait a moment for one."""
        self._watch()
        if not self.port.poll(time.monotonic()):
            self._hub.pause(_IDLE_S)
            self._hub.tick()  # other faces have sessions, too
            return
        later, self._later = self._later, []
        for asked in later:
            self._answer(asked)
        patience = _AGAIN_S if self._later else _IDLE_S
        if not self.port.socket.poll(int(1e3 * patience)):
            self._hub.tick()
            return
        for frames in self.port.receive(1):  # to look for a second one takes longer than a wait
            self._watch()  # the number of a lost connection may be that of a new one
            peer = frames[-1].get(self._zmq.SRCFD)
            if len(frames) != 3 or frames[1].bytes:
                self._hub.dispatcher.errors["bad_frames"] += 1
                continue
            self._answer(_Asked(frames[0].bytes, frames[2].bytes, peer, time.monotonic()))
        self._hub.tick()

    def _answer(self, asked: _Asked) -> None:
        """Answer a request, or keep it until its answer is there; others are answered meanwhile."""
        try:
            reply = self._hub.answer(asked.content, asked.peer, again=True)
        except NotYetError as error:
            if time.monotonic() < asked.came + (error.patience_s or _PATIENCE_S):
                self._later.append(asked)
                return
            reply = self._hub.answer(asked.content, asked.peer)  # says why there is no answer
        self.port.send(asked.sender, b"", reply)

    def _watch(self) -> None:
        """Find the connections that were lost."""
        # Looked at before each request: twice as fast as `poll`, which makes a poller.
        while self._monitor.get(self._zmq.EVENTS) & self._zmq.POLLIN:
            from zmq.utils.monitor import recv_monitor_message

            lost = recv_monitor_message(self._monitor)["value"]
            self._later = [asked for asked in self._later if asked.peer != lost]
            self._hub.disconnected(lost)

    def close(self) -> None:
        """Close the sockets."""
        self.port.socket.disable_monitor()
        self.port.close()
