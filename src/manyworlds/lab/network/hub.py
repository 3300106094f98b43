"""Sockets of a lab's server, in threads of their own."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable
from typing import Any

from manyworlds.lab.control import NET, PANEL
from manyworlds.lab.face import LabFace
from manyworlds.lab.network.config import LabServerCfg
from manyworlds.lab.network.control_inbox import ControlInbox
from manyworlds.lab.network.dispatcher import Dispatcher
from manyworlds.lab.network.messages import Encoding, encode
from manyworlds.lab.network.notes import Notes
from manyworlds.lab.network.observations import observe
from manyworlds.lab.network.ports import Port
from manyworlds.lab.network.roster import Roster, RosterCache
from manyworlds.lab.network.streams import StateEncoder, info_is_due, info_message
from manyworlds.lab.network.web import WebFace
from manyworlds.lab.snapshot import Snapshot
from manyworlds.lab.verbs.fields import PlainMap, VerbError
from manyworlds.utils.extras import require_extra

_LOG = logging.getLogger(__name__)

_POLL_MS = 1
_IDLE_S = 0.05  # period of the threads while there is no world
_STATUS_S = 0.1  # age of the robots' status from which it is read again
_MOST = 10_000  # messages that are read before anything else is done
_JOIN_S = 10.0


class LabHub:
    """Serves one lab at a time to programs on this machine; it outlives the lab.

    One thread answers requests, another one publishes states and collects targets. They read
    snapshots and call verbs only, so that no client can delay a step.

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
        self.cfg = LabServerCfg() if cfg is None else cfg
        self.reports = Notes()
        """Sentences that were reported, the newest last."""
        self._tell = report
        self._zmq: Any = require_extra("zmq", "net")
        require_extra("msgpack", "net")
        self._context = self._zmq.Context()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._prepared = True
        self.dispatcher = Dispatcher(None, self.cfg)
        self.dispatcher.ports = lambda: [port.describe() for port in self._ports()]
        self.requests = RequestServer(self)
        self.streams = StreamServer(self)
        self.web = WebFace(self)
        self._threads = [
            threading.Thread(target=self._run, args=(server,), name=name, daemon=True)
            for name, server in (("requests", self.requests), ("streams", self.streams))
        ]

    def __enter__(self) -> LabHub:
        """Start the threads."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the threads."""
        self.stop()

    def start(self) -> None:
        """Start the threads; ports in use are tried again until they are free."""
        for thread in self._threads:
            thread.start()
        self.web.start()

    def stop(self) -> None:
        """Close all sockets, and end the threads."""
        self.dispatcher.closing = True
        self._stopping.set()
        self.web.close()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(_JOIN_S)
        self.dispatcher.attach(None)  # no velocity is held any more
        self.requests.close()
        self.streams.close()
        self._context.destroy(linger=0)

    def attach(self, face: LabFace | None) -> None:
        """Serve a lab, or none for now; clients stay connected, and their sessions open.

        Robots of the panel get the network as their owner, if `own_robots` is on.

        Raises:
            VerbError: clients could not tell its robots apart.
        """
        with self._lock:
            self.dispatcher.attach(face)
            self.streams.attach(face)
            if face is None:
                return
            robots: Any = face.call("read_status")["robots"]
            for name, robot in robots.items():
                if self.cfg.own_robots and robot["owner"] == PANEL:
                    face.call("take_robot", robot=name, owner=NET)
            self.dispatcher.refresh()
            self._prepared = False

    def report(self, text: str) -> None:
        """Keep a sentence, and hand it to `report`."""
        self.reports.append(text)
        self._tell(text)

    def new_port(self, use: str, kind: int) -> Port:
        """Create a socket for one of the ports of the config."""
        number, limit = self.cfg.ports[use], self.cfg.limits.max_bytes
        return Port(self._context, use, kind, self.cfg.host, number, self.report, limit)

    @property
    def ports(self) -> dict[str, int]:
        """Ports by their use."""
        return {port.use: port.number for port in self._ports()}

    def is_open(self) -> bool:
        """Return True if all ports are open."""
        return all(port.state == "open" for port in self._ports())

    def describe(self) -> dict[str, object]:
        """Return ports, clients, counters and reports as plain data."""
        return {
            "ports": [port.describe() for port in self._ports()],
            "sessions": len(self.dispatcher.sessions),
            "events": list(self.dispatcher.sessions.events),
            "requests": dict(self.dispatcher.requests),
            "errors": dict(self.dispatcher.errors),
            "control": dict(self.streams.inbox.stats),
            "reports": list(self.reports),
        }

    def answer(self, request: bytes, peer: Hashable, reply_as: Encoding | None = None) -> bytes:
        """Answer a request; see `Dispatcher.handle`."""
        with self._lock:
            return self.dispatcher.handle(request, peer, reply_as)

    def note_message(self, peer: Hashable) -> None:
        """Note that a connection has sent something, which may wait for its answer."""
        self.dispatcher.sessions.note_message(peer, self.dispatcher.now)

    def allow_page(self, url: str) -> None:
        """Let the lab's page use the WebSocket."""
        self.web.allow_page(url)

    def disconnected(self, peer: Hashable) -> None:
        """End the sessions of a connection that was lost."""
        with self._lock:
            self.dispatcher.disconnected(peer)

    def tick(self) -> None:
        """End sessions whose heartbeats stopped; export a new model before a client asks for it."""
        with self._lock:
            self.dispatcher.tick()
            if not self._prepared:
                self._prepared = True
                self.dispatcher.prepare()

    def port_errors(self) -> list[str]:
        """Return the reasons why ports are not open."""
        return [port.error for port in self._ports() if port.error]

    def _ports(self) -> list[Port | WebFace]:
        return [self.requests.port, *self.streams.ports, self.web]

    def _run(self, server: RequestServer | StreamServer) -> None:
        while not self._stopping.is_set():
            try:
                server.run_once()
            except Exception as error:
                # A defect of this program: it is told, and the other clients are served.
                _LOG.exception("The server's thread failed.")
                self.report(f"The server failed once: {type(error).__name__}: {error}.")
                self._stopping.wait(_IDLE_S)


class RequestServer:
    """Socket of requests: like a REP socket, but one client does not wait for another's bytes.

    Args:
        hub: the hub.
    """

    def __init__(self, hub: LabHub) -> None:
        self._hub, self._zmq = hub, hub._zmq
        self.port = hub.new_port("step", self._zmq.ROUTER)
        monitored = self._zmq.EVENT_DISCONNECTED
        self._monitor = self.port.socket.get_monitor_socket(monitored)

    def run_once(self) -> None:
        """Answer the requests that wait, or wait a moment for one."""
        self._watch()
        if not self.port.poll(time.monotonic()):
            self._hub._stopping.wait(_IDLE_S)
            self._hub.tick()
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
        self.ports = (self.state, self.info, self.control)
        self.control.socket.setsockopt(zmq.SUBSCRIBE, b"")  # names are compared as a whole
        self.inbox = ControlInbox(hub.report)
        self._wanted: set[bytes] = set()
        self._next: tuple[LabFace | None] = (None,)
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
        if self._face is not self._next[0]:
            self._switch(self._next[0])
        if self._face is None or not (any(ready) or self._hub.web.state == "open"):
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
        self._full = (-1, {}, b"")

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
            self.state.send(b"state/full", self._full_state(snapshot, roster, status)[1])

    def _full_state(
        self, snapshot: Snapshot, roster: Roster, status: PlainMap
    ) -> tuple[PlainMap, bytes]:
        """Return a whole state, and the same as msgpack; each is made once for all who ask."""
        if self._full[0] != snapshot.frame_id:
            full = {"op": "state_full", **observe(roster, snapshot, "standard", status)}
            self._full = snapshot.frame_id, full, encode(full, "msgpack")
        return self._full[1:]

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
