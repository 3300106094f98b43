"""Sockets of states, lists of actuators, and targets."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from manyworlds.lab.errors import VerbError
from manyworlds.lab.face import LabFace
from manyworlds.lab.loop.shared_snapshots import SNAPSHOT_TOPIC, pack_snapshot
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.server.control_inbox import ControlInbox
from manyworlds.lab.server.messages import encode
from manyworlds.lab.server.observations import observe
from manyworlds.lab.server.ports import Outlet
from manyworlds.lab.server.roster import Roster, RosterCache
from manyworlds.lab.server.streams import Message, StateEncoder, info_is_due, info_message
from manyworlds.lab.verbs.fields import PlainMap

if TYPE_CHECKING:
    from manyworlds.lab.server.hub import LabHub

_PERIOD_S = 0.0005  # between two looks at the world while a client wants them
_IDLE_S = 0.05  # longest wait while nobody does, or there is no world
_PATIENCE_S = 1.0  # time after which a failure is reported
_STATUS_S = 0.1  # age of the robots' status from which it is read again
_MOST = 10_000  # messages that are read before anything else is done


class StreamServer:
    """Sockets of states, lists of actuators, and targets.

    Args:
        hub: the hub.
    """

    def __init__(self, hub: LabHub) -> None:
        self._hub, zmq = hub, hub.zmq
        self.states = hub.new_outlets("state")
        self.state = self.states[0]
        self.info = hub.new_port("info", zmq.PUB)
        self.control = hub.new_port("control", zmq.SUB)
        self.ports = [*self.states, self.info, self.control]
        self.control.socket.setsockopt(zmq.SUBSCRIBE, b"")  # names are compared as a whole
        self.inbox = ControlInbox(hub.report)
        self._poller = zmq.Poller()
        self._failure = "", 0.0
        """Reason why nothing is published, and the time since when [s]; inf after its report."""
        self._next: tuple[LabFace | None] = (None,)
        self._present = self._next
        self._face: LabFace | None = None
        self._cache: RosterCache | None = None
        self._encoder: tuple[Roster, StateEncoder] | None = None
        self._frame = self._last = -1
        self._status: tuple[float, PlainMap] = (-1e9, {})
        self._full: tuple[int, PlainMap, bytes] = (-1, {}, b"")

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
        if self._face is None or not (any(ready) or self._hub.web.state == "open"):
            self._hub.pause(_IDLE_S)
            return
        try:
            self._exchange(self._face, now)
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

    def _switch(self, face: LabFace | None) -> None:
        self._face = face
        self._cache = None if face is None else RosterCache(face)
        self._encoder, self._frame, self._last = None, -1, -1
        self._full = (-1, {}, b"")

    def _exchange(self, face: LabFace, now: float) -> None:  # noqa: C901
        assert self._cache is not None
        roster = self._cache.get()
        self._wait()
        if self.control.state == "open":
            for frames in self.control.receive(_MOST):
                self.inbox.put([frame.bytes for frame in frames], roster)
            if not self.inbox.is_empty:
                self.inbox.flush(face)
        for outlet in self.states:
            if outlet.state == "open":
                outlet.read_subscriptions()
        snapshot = face.snapshot
        if snapshot.model_version != roster.version:
            return
        if self._hub.web.is_due(snapshot.frame_id):
            full, packed = self._full_state(snapshot, roster, self._robots(face, now))
            self._hub.web.publish(snapshot.frame_id, full, packed)
        if snapshot.frame_id == self._frame:
            return
        self._frame = snapshot.frame_id
        if self._encoder is None or self._encoder[0] is not roster:
            self._encoder = roster, StateEncoder(roster)
        if any(outlet.wanted for outlet in self.states):
            self._publish(snapshot, self._encoder[1], roster, self._robots(face, now))
        if self.info.state == "open" and info_is_due(self._last, self._frame):
            for robot in roster.articulations:
                cameras = self._hub.cameras.topics(robot.name)
                self.info.send(info_message(roster, robot, cameras))
        self._last = self._frame

    def _wait(self) -> None:
        """Wait for the next snapshot while a client wants it, else for a message."""
        if any(outlet.wanted for outlet in self.states) or self._hub.web.wants_states:
            self._hub.pause(_PERIOD_S)
            return
        for port in (*self.states, self.control):
            if port.state == "open":
                self._poller.register(port.socket, self._hub.zmq.POLLIN)
        if self._poller.sockets:
            self._poller.poll(int(1e3 * _IDLE_S))
        else:
            self._hub.pause(_IDLE_S)

    def _robots(self, face: LabFace, now: float) -> PlainMap:
        if now - self._status[0] > _STATUS_S:
            robots = face.verbs.read_status()["robots"]
            self._status = now, robots
        return self._status[1]

    def _publish(
        self, snapshot: Snapshot, encoder: StateEncoder, roster: Roster, status: PlainMap
    ) -> None:
        outlets = [outlet for outlet in self.states if outlet.wanted]
        wanted = frozenset().union(*(outlet.wanted for outlet in outlets))
        if any(outlet.wants(topic) for outlet in outlets for topic in encoder.topics):
            _send(outlets, encoder.encode(snapshot, status))
        if any(outlet.wants(b"scene/") for outlet in outlets):
            _send(outlets, encoder.encode_entities(snapshot))
        if any(outlet.wants(b"state/full") for outlet in outlets):
            _send(outlets, [(b"state/full", self._full_state(snapshot, roster, status)[1])])
        if SNAPSHOT_TOPIC in wanted:  # only by its whole name: readers of all topics need it not
            _send(outlets, [(SNAPSHOT_TOPIC, encode(pack_snapshot(snapshot), "arrays"))])

    def _full_state(
        self, snapshot: Snapshot, roster: Roster, status: PlainMap
    ) -> tuple[PlainMap, bytes]:
        """Return a whole state, and the same as msgpack; each is made once for all who ask."""
        if self._full[0] != snapshot.frame_id:
            full = {"op": "state_full", **observe(roster, snapshot, "standard", status)}
            self._full = snapshot.frame_id, full, encode(full, "msgpack")
        return self._full[1:]

    def close(self) -> None:
        """Close the sockets."""
        for port in self.ports:
            port.close()


def _send(outlets: Sequence[Outlet], messages: Iterable[Message]) -> None:
    """Send messages, which are encoded once, through all outlets."""
    for message in messages:
        for outlet in outlets:
            outlet.send(*message)
