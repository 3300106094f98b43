"""Sockets of images: all kinds with a header on one port, and colors alone on one port a camera."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from manyworlds.lab.errors import VerbError
from manyworlds.lab.face import LabFace
from manyworlds.lab.pictures.camera import KINDS, Kind, LabCameraCfg
from manyworlds.lab.pictures.frame import Frame
from manyworlds.lab.pictures.hub import CameraHub
from manyworlds.lab.pictures.subscription import Subscription
from manyworlds.lab.server.images import bgra, image_message, image_topic, robot_cameras
from manyworlds.lab.server.ports import Outlet, Port
from manyworlds.lab.server.roster import RosterCache
from manyworlds.lab.server.streams import camera_message

if TYPE_CHECKING:
    from manyworlds.lab.server.hub import LabHub

_LIST_S = 0.5  # period in which cameras are looked for that have come or gone
_MOST_MISSES = 5
_IDLE_S = 0.05  # longest wait for a frame or a subscription
_BACKLOG = 10  # frames that wait for a slow reader before further ones are dropped
_TRIES = 10  # further ports that are tried for the colors of a camera

_Stream = tuple[str, Kind]


class CameraServer:
    """Sockets that publish images while a client has subscribed; else nothing is drawn.

    Args:
        hub: the hub.
    """

    def __init__(self, hub: LabHub) -> None:
        self._hub = hub
        self.images = hub.new_outlets("image", backlog=_BACKLOG)
        self._colors: dict[tuple[str, str], Outlet] = {}
        self._live: dict[tuple[str, str], str] = {}
        self._topics: dict[str, dict[str, dict[str, object]]] = {}
        self._next: tuple[LabFace | None, CameraHub | None] = (None, None)
        self._present = self._next
        self._cache: RosterCache | None = None
        self._cameras: Mapping[str, LabCameraCfg] = {}
        self._streams: dict[_Stream, Subscription[Frame]] = {}
        self._arrived = threading.Event()
        self._listed = 0.0
        self._error = ""
        self._misses = 0  # times in a row that the model changed meanwhile
        self._num_sent = 0

    @property
    def ports(self) -> list[Port]:
        """All ports."""
        return [*self.images, *self._colors.values()]

    def attach(self, face: LabFace | None, painter: CameraHub | None) -> None:
        """Publish the cameras of another world; may be called in any thread.

        Args:
            face: the world; None for none.
            painter: draws its cameras.
        """
        self._next = (face, painter)

    def topics(self, robot: str) -> dict[str, dict[str, object]]:
        """Return the stream of the colors of each camera of a robot, by its name for clients."""
        return self._topics.get(robot, {})

    def counts(self) -> dict[str, int]:
        """Return the number of images that were drawn and sent, and of streams that are wanted."""
        painter = self._present[1]
        drawn = 0 if painter is None else painter.num_drawn
        return {"drawn": drawn, "sent": self._num_sent, "streams": len(self._streams)}

    def run_once(self) -> None:
        """Publish the frames that have come; wait a moment for further ones."""
        now = time.monotonic()
        if self._present is not self._next:
            self._switch()
        face, painter = self._present
        ports = [port for port in self.ports if port.poll(now)]
        if face is None or painter is None or not ports:
            self._hub.pause(_IDLE_S)
            return
        try:
            changed = any([outlet.read_subscriptions() for outlet in self._outlets()])
            if changed or now - self._listed > _LIST_S:
                self._listed = now
                self._list(painter)
                self._subscribe(painter)
        except (VerbError, ValueError) as error:
            # A model that is edited many times a second is listed a little later.
            busy = isinstance(error, VerbError) and error.code == "not_ready"
            self._misses = self._misses + 1 if busy else _MOST_MISSES
            if self._misses >= _MOST_MISSES:
                self._tell(str(error))
            self._hub.pause(1.0)
            return
        self._misses = 0
        self._arrived.wait(_IDLE_S)
        self._arrived.clear()
        for stream in list(self._streams.values()):
            for frame in stream.take():
                self._publish(frame)
            if stream.error:
                self._tell(stream.error)

    def _outlets(self) -> list[Outlet]:
        outlets = [*self.images, *self._colors.values()]
        return [outlet for outlet in outlets if outlet.state == "open"]

    def _switch(self) -> None:
        self._present = self._next
        face = self._present[0]
        for stream in self._streams.values():
            stream.close()
        self._streams.clear()
        self._cache = None if face is None else RosterCache(face)
        self._listed, self._error = 0.0, ""

    def _list(self, painter: CameraHub) -> None:
        """Find the cameras of the world, and open a port for each one of a robot."""
        assert self._cache is not None
        self._cameras = painter.cameras
        live = robot_cameras(self._cache.get())
        fresh = dict(self._colors)
        for key in self._colors.keys() - live.keys():
            fresh.pop(key).close()
        for key in live.keys() - self._colors.keys():
            fresh[key] = self._new_port(key, [port.number for port in fresh.values()])
        self._colors, self._live = fresh, live
        topics: dict[str, dict[str, dict[str, object]]] = {}
        for (robot, short), name in live.items():
            if name in self._cameras:
                stream = self._describe(robot, short, self._cameras[name])
                topics.setdefault(robot, {})[short] = stream
        self._topics = topics

    def _new_port(self, key: tuple[str, str], taken: list[int]) -> Outlet:
        first = self._hub.cfg.ports["camera"]
        others: list[int] = []
        if first:
            own = [n for use, n in self._hub.cfg.ports.items() if use != "camera"]
            used = {*own, *taken}
            free = (number for number in itertools.count(first) if number not in used)
            first, *others = itertools.islice(free, 1 + _TRIES)
        more = {"number": first, "others": others, "backlog": _BACKLOG}
        return self._hub.new_port(f"camera {'/'.join(key)}", self._hub.zmq.XPUB, Outlet, **more)

    def _describe(self, robot: str, short: str, camera: LabCameraCfg) -> dict[str, object]:
        port = self._colors[robot, short]
        return {
            "mode": "real",
            "resolution": [camera.width, camera.height],
            "fovy": camera.fovy,
            "zmq_endpoint": f"tcp://{port.host}:{port.number}",
            "zmq_topic": f"{robot}/camera/{short} ",
        }

    def _subscribe(self, painter: CameraHub) -> None:
        """Draw what clients want, and nothing else."""
        wanted: set[_Stream] = set()
        topics = frozenset().union(*(outlet.wanted for outlet in self.images))
        for name in self._cameras if topics else ():
            for kind in KINDS:
                topic = image_topic(name, kind)
                if any(topic.startswith(want) for want in topics):
                    wanted.add((name, kind))
        for (robot, short), port in self._colors.items():
            topic = f"{robot}/camera/{short} ".encode()
            if any(topic.startswith(want) for want in port.wanted):
                wanted.add((self._live[robot, short], "rgb"))
        for key in self._streams.keys() - wanted:
            self._streams.pop(key).close()
        for key in sorted(wanted - self._streams.keys()):
            if key[0] in self._cameras:
                stream = painter.subscribe(*key)
                stream.on_news = self._arrived.set
                self._streams[key] = stream

    def _publish(self, frame: Frame) -> None:
        topic = image_topic(frame.camera, frame.kind)
        outlets = [
            outlet
            for outlet in self.images
            if any(topic.startswith(want) for want in outlet.wanted)
        ]
        if outlets:
            message = image_message(frame)
            for outlet in outlets:
                outlet.send(*message)
                self._num_sent += 1
        for (robot, short), name in self._live.items():
            port = self._colors[robot, short]
            if name == frame.camera and frame.kind == "rgb" and port.wanted:
                port.send(*camera_message(robot, short, bgra(frame.image)))
                self._num_sent += 1

    def _tell(self, error: str) -> None:
        """Report why there are no images, once."""
        if error != self._error:
            self._hub.report(f"Images are not published: {error}")
        self._error = error

    def close(self) -> None:
        """Close the sockets."""
        for stream in self._streams.values():
            stream.close()
        for port in self.ports:
            port.close()
