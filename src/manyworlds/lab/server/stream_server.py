"""Socket of states: whole snapshots, and what plugins publish beside them."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from manyworlds.lab.errors import VerbError
from manyworlds.lab.face import LabFace
from manyworlds.lab.loop.shared_snapshots import SNAPSHOT_TOPIC, pack_snapshot
from manyworlds.lab.server.messages import encode
from manyworlds.lab.server.plugin import Publisher
from manyworlds.lab.server.ports import STATE_BACKLOG, STATE_BUFFER, Port

if TYPE_CHECKING:
    from manyworlds.lab.server.hub import LabHub

_PERIOD_S = 0.0005  # between two looks at the world while a client wants them
_IDLE_S = 0.05  # longest wait while nobody does, or there is no world
_PATIENCE_S = 1.0  # time after which a failure is reported


class StreamServer:
    """Socket of states.

    Args:
        hub: the hub.
    """

    def __init__(self, hub: LabHub) -> None:
        self._hub = hub
        self.states = hub.new_outlets("state", backlog=STATE_BACKLOG, buffer=STATE_BUFFER)
        self._publishers: list[Publisher] = []
        self._poller = hub.zmq.Poller()
        self._failure = "", 0.0
        """Reason why nothing is published, and the time since when [s]; inf after its report."""
        self._next: tuple[LabFace | None] = (None,)
        self._present = self._next
        self._frame = -1

    @property
    def ports(self) -> list[Port]:
        """All ports."""
        ports: list[Port] = list(self.states)
        for publisher in self._publishers:
            ports += publisher.ports
        return ports

    def add(self, publisher: Publisher) -> None:
        """Let a plugin publish, before the thread starts."""
        self._publishers.append(publisher)

    def attach(self, face: LabFace | None) -> None:
        """Publish another world from now on; may be called in any thread."""
        self._next = (face,)

    def run_once(self) -> None:
        """Publish the newest snapshot if it is new; let plugins publish; wait a moment."""
        now = time.monotonic()
        ready = [port.poll(now) for port in self.ports]
        if self._present is not self._next:  # also where one face has another world
            self._present = self._next
            self._frame = -1
            for publisher in self._publishers:
                publisher.attach(self._present[0])
        face = self._present[0]
        if face is None or not (any(ready) or self._hub.web.state == "open"):
            self._hub.pause(_IDLE_S)
            return
        try:
            self._exchange(face, now)
            self._failure = "", now
        except (VerbError, ValueError) as error:
            self._fail(str(error), now)

    def _fail(self, reason: str, now: float) -> None:
        """Report a failure that lasts, once; a model that is being edited may be read soon."""
        before, since = self._failure
        if before != reason:
            self._failure = reason, now
        elif since <= now - _PATIENCE_S:
            self._failure = reason, math.inf
            self._hub.report(f"Nothing is published: {reason}")
        self._hub.pause(_IDLE_S)

    def _exchange(self, face: LabFace, now: float) -> None:
        self._wait()
        outlets = [outlet for outlet in self.states if outlet.state == "open"]
        for outlet in outlets:
            outlet.read_subscriptions()
        face.sync_model()  # after a rebuild, the snapshots are those of the new world
        snapshot = face.snapshot
        if snapshot.frame_id != self._frame:
            self._frame = snapshot.frame_id
            # Only by its whole name: readers of all topics do not need it.
            wanting = [outlet for outlet in outlets if SNAPSHOT_TOPIC in outlet.wanted]
            if wanting:
                content = encode(pack_snapshot(snapshot), "arrays")
                for outlet in wanting:
                    outlet.send(SNAPSHOT_TOPIC, content)
        for publisher in self._publishers:
            publisher.exchange(face, snapshot, outlets, now)

    def _wait(self) -> None:
        """Wait for the next snapshot while a client wants it, else for a message."""
        if any(outlet.wanted for outlet in self.states) or self._hub.web.wants_states:
            self._hub.pause(_PERIOD_S)
            return
        for port in self.ports:
            if port.state == "open":
                self._poller.register(port.socket, self._hub.zmq.POLLIN)
        if self._poller.sockets:
            self._poller.poll(int(1e3 * _IDLE_S))
        else:
            self._hub.pause(_IDLE_S)

    def close(self) -> None:
        """Close the sockets."""
        for port in self.ports:
            port.close()
