"""Sockets of states, lists of actuators, and targets."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from manyworlds.lab.face import LabFace
from manyworlds.lab.network.control_inbox import ControlInbox
from manyworlds.lab.network.messages import encode
from manyworlds.lab.network.observations import observe
from manyworlds.lab.network.roster import Roster, RosterCache
from manyworlds.lab.network.streams import StateEncoder, info_is_due, info_message
from manyworlds.lab.snapshot import Snapshot
from manyworlds.lab.verbs.fields import PlainMap, VerbError

if TYPE_CHECKING:
    from manyworlds.lab.network.hub import LabHub

_POLL_MS = 1
_IDLE_S = 0.05  # period while there is no world
_STATUS_S = 0.1  # age of the robots' status from which it is read again
_MOST = 10_000  # messages that are read before anything else is done


class StreamServer:
    """Sockets of states, lists of actuators, and targets.

    Args:
        hub: the hub.
    """

    def __init__(self, hub: LabHub) -> None:
        self._hub, zmq = hub, hub._zmq
        self.state = hub.new_port("state", zmq.XPUB)
        self.info = hub.new_port("info", zmq.PUB)
        self.control = hub.new_port("control", zmq.SUB)
        self.ports = [self.state, self.info, self.control]
        self.control.socket.setsockopt(zmq.SUBSCRIBE, b"")  # names are compared as a whole
        self.inbox = ControlInbox(hub.report)
        self._wanted: set[bytes] = set()
        self._next: tuple[LabFace | None] = (None,)
        self._present = self._next
        self._face: LabFace | None = None
        self._cache: RosterCache | None = None
        self._encoder: tuple[Roster, StateEncoder] | None = None
        self._frame = self._last = -1
        self._status: tuple[float, PlainMap] = (-1e9, {})

    def attach(self, face: LabFace | None) -> None:
        """Publish another world from now on; may be called in any thread."""
        self._next = (face,)

    def run_once(self) -> None:
        """Publish the newest snapshot if it is new; pass targets on; wait a moment."""
        now = time.monotonic()
        ready = [port.poll(now) for port in self.ports]
        if self._present is not self._next:  # also where one face has another world
            self._present = self._next
            self._switch(self._present[0])
        if self._face is None or not any(ready):
            self._hub._stopping.wait(_IDLE_S)
            return
        try:
            self._exchange(self._face, now)
        except (VerbError, ValueError) as error:
            self._hub.report(f"Nothing is published: {error}")
            self._hub._stopping.wait(1.0)

    def _switch(self, face: LabFace | None) -> None:
        self._face = face
        self._cache = None if face is None else RosterCache(face)
        self._encoder, self._frame, self._last = None, -1, -1

    def _exchange(self, face: LabFace, now: float) -> None:
        assert self._cache is not None
        roster = self._cache.get()
        if self.control.state != "open":
            self._hub._stopping.wait(1e-3 * _POLL_MS)
        elif self.control.socket.poll(_POLL_MS):
            for frames in self.control.receive(_MOST):
                self.inbox.put([frame.bytes for frame in frames], roster)
            if not self.inbox.is_empty:
                self.inbox.flush(face)
        if self.state.state == "open":
            self._read_subscriptions()
        snapshot = face.snapshot
        if snapshot.frame_id == self._frame or snapshot.model_version != roster.version:
            return
        self._frame = snapshot.frame_id
        if self._encoder is None or self._encoder[0] is not roster:
            self._encoder = roster, StateEncoder(roster)
        if self._wanted:
            self._publish(snapshot, self._encoder[1], roster, self._robots(face, now))
        if self.info.state == "open" and info_is_due(self._last, self._frame):
            for robot in roster.articulations:
                self.info.send(info_message(roster, robot))
        self._last = self._frame

    def _robots(self, face: LabFace, now: float) -> PlainMap:
        if now - self._status[0] > _STATUS_S:
            robots: Any = face.call("read_status")["robots"]
            self._status = now, robots
        return self._status[1]

    def _publish(
        self, snapshot: Snapshot, encoder: StateEncoder, roster: Roster, status: PlainMap
    ) -> None:
        everything = b"" in self._wanted
        if everything or any(not w.startswith((b"scene/", b"state/")) for w in self._wanted):
            for message in encoder.encode(snapshot, status):
                self.state.send(*message)
        if self._wants(b"scene/"):
            for message in encoder.encode_entities(snapshot):
                self.state.send(*message)
        if self._wants(b"state/full"):
            full = {"op": "state_full", **observe(roster, snapshot, "standard", status)}
            self.state.send(b"state/full", encode(full, "msgpack"))

    def _wants(self, topic: bytes) -> bool:
        """Return True if a client has subscribed to topics that begin so."""
        return any(topic.startswith(want) or want.startswith(topic) for want in self._wanted)

    def _read_subscriptions(self) -> None:
        for frames in self.state.receive(_MOST):
            event = frames[0].bytes
            if event[:1] == b"\x01":
                if len(self._wanted) >= _MOST:
                    event = b"\x01"  # too many to remember: everything
                self._wanted.add(event[1:])
            elif event[:1] == b"\x00":
                self._wanted.discard(event[1:])

    def close(self) -> None:
        """Close the sockets."""
        for port in self.ports:
            port.close()
