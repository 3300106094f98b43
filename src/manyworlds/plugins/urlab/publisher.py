"""States of robots, lists of actuators, and targets, in URLab's messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from manyworlds.lab.face import LabFace
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.server.hub import LabHub
from manyworlds.lab.server.messages import encode
from manyworlds.lab.server.ports import Outlet
from manyworlds.lab.verbs.fields import PlainMap
from manyworlds.plugins.urlab.clients import Clients
from manyworlds.plugins.urlab.control_inbox import ControlInbox
from manyworlds.plugins.urlab.observations import observe, robot_inputs
from manyworlds.plugins.urlab.roster import Roster
from manyworlds.plugins.urlab.streams import Message, StateEncoder, info_is_due, info_message

_MOST = 10_000  # messages that are read before anything else is done


class StatePublisher:
    """Publishes states and lists of actuators, and takes targets.

    Args:
        hub: the hub.
        clients: knows the robots, and the streams of their cameras.
    """

    def __init__(self, hub: LabHub, clients: Clients) -> None:
        self._hub = hub
        self._clients = clients
        self.info = hub.new_port("info", hub.zmq.PUB)
        self.control = hub.new_port("control", hub.zmq.SUB)
        self.ports = [self.info, self.control]
        self.control.socket.setsockopt(hub.zmq.SUBSCRIBE, b"")  # names are compared as a whole
        self.inbox = ControlInbox(hub.report)
        self.attach(None)

    def attach(self, face: LabFace | None) -> None:
        """Publish another world from now on."""
        self._encoder: tuple[Roster, StateEncoder] | None = None
        self._frame = self._last = -1
        self._full: tuple[int, PlainMap, bytes] = (-1, {}, b"")

    def exchange(
        self, face: LabFace, snapshot: Snapshot, outlets: Sequence[Outlet], now: float
    ) -> None:
        """Take targets, and publish a snapshot if it is new; see `Publisher`."""
        roster = self._clients.rosters.get(face)
        if self.control.state == "open":
            for frames in self.control.receive(_MOST):
                self.inbox.put([frame.bytes for frame in frames], roster)
            if not self.inbox.is_empty:
                self.inbox.flush(face)
        if snapshot.model_version != roster.version:
            return
        web = self._hub.web
        if web.is_due(snapshot.frame_id):
            full, packed = self._full_state(snapshot, roster, robot_inputs(face.facts))
            web.publish(snapshot.frame_id, full, packed)
        if snapshot.frame_id == self._frame:
            return
        self._frame = snapshot.frame_id
        if self._encoder is None or self._encoder[0] is not roster:
            self._encoder = roster, StateEncoder(roster)
        wanted = [outlet for outlet in outlets if outlet.wanted]
        if wanted:
            self._publish(wanted, snapshot, self._encoder[1], roster, robot_inputs(face.facts))
        if self.info.state == "open" and info_is_due(self._last, self._frame):
            for robot in roster.articulations:
                cameras = self._clients.camera_topics(robot.name)
                self.info.send(info_message(roster, robot, cameras))
        self._last = self._frame

    def _publish(
        self,
        outlets: Sequence[Outlet],
        snapshot: Snapshot,
        encoder: StateEncoder,
        roster: Roster,
        inputs: PlainMap,
    ) -> None:
        if any(outlet.wants(topic) for outlet in outlets for topic in encoder.topics):
            _send(outlets, encoder.encode(snapshot, inputs))
        if any(outlet.wants(b"scene/") for outlet in outlets):
            _send(outlets, encoder.encode_entities(snapshot))
        if any(outlet.wants(b"state/full") for outlet in outlets):
            _send(outlets, [(b"state/full", self._full_state(snapshot, roster, inputs)[1])])

    def _full_state(
        self, snapshot: Snapshot, roster: Roster, inputs: PlainMap
    ) -> tuple[PlainMap, bytes]:
        """Return a whole state, and the same as msgpack; each is made once for all who ask."""
        if self._full[0] != snapshot.frame_id:
            full = {"op": "state_full", **observe(roster, snapshot, "standard", inputs)}
            self._full = snapshot.frame_id, full, encode(full, "msgpack")
        return self._full[1:]


def _send(outlets: Sequence[Outlet], messages: Iterable[Message]) -> None:
    """Send messages, which are encoded once, through all outlets."""
    for message in messages:
        for outlet in outlets:
            outlet.send(*message)
