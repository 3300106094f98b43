"""Socket that answers requests."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyworlds.lab.network.hub import LabHub
    from manyworlds.lab.network.ports import Port

_IDLE_S = 0.05  # longest wait for a request
_MOST = 10_000  # messages that are read before anything else is done


class RequestServer:
    """Socket of requests: like a REP socket, but one client does not wait for another's bytes.

    Args:
        hub: the hub.
        port: its port, a `ROUTER` socket.
    """

    def __init__(self, hub: LabHub, port: Port) -> None:
        self._hub, self._zmq = hub, hub.zmq
        self.port, self.ports = port, [port]
        monitored = self._zmq.EVENT_DISCONNECTED
        self._monitor = port.socket.get_monitor_socket(monitored)

    def run_once(self) -> None:
        """Answer the requests that wait, or wait a moment for one."""
        self._watch()
        if not self.port.poll(time.monotonic()):
            self._hub.pause(_IDLE_S)
            self._hub.tick()  # other faces have sessions, too
            return
        if not self.port.socket.poll(int(1e3 * _IDLE_S)):
            self._hub.tick()
            return
        for frames in self.port.receive(_MOST):
            self._watch()  # the number of a lost connection may be that of a new one
            peer = frames[-1].get(self._zmq.SRCFD)
            if len(frames) != 3 or frames[1].bytes:
                self._hub.dispatcher.errors["bad_frames"] += 1
                continue
            reply = self._hub.answer(frames[2].bytes, peer)
            self.port.send(frames[0].bytes, b"", reply)
        self._hub.tick()

    def _watch(self) -> None:
        """Find the connections that were lost."""
        from zmq.utils.monitor import recv_monitor_message

        while self._monitor.poll(0):
            self._hub.disconnected(recv_monitor_message(self._monitor)["value"])

    def close(self) -> None:
        """Close the sockets."""
        self.port.socket.disable_monitor()
        self.port.close()
