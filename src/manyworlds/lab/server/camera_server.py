"""Sockets of images: all kinds with a header on one port, and what plugins publish."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from manyworlds.lab.errors import VerbError
from manyworlds.lab.face import LabFace
from manyworlds.lab.pictures.camera import KINDS, Kind, LabCameraCfg
from manyworlds.lab.pictures.cameras import Cameras
from manyworlds.lab.pictures.image import CameraImage
from manyworlds.lab.pictures.subscription import Subscription
from manyworlds.lab.server.images import image_message, image_topic
from manyworlds.lab.server.plugin import ImagePublisher
from manyworlds.lab.server.ports import Outlet

if TYPE_CHECKING:
    from manyworlds.lab.server.hub import LabHub

BACKLOG = 10
"""Images that wait for a slow reader before further ones are dropped."""
_LIST_S = 0.5  # period in which cameras are looked for that have come or gone
_MOST_MISSES = 5
_RETRY_S = 5.0  # time after the end of the process that draws until it is asked again
_IDLE_S = 0.05  # longest wait for an image or a subscription

_Stream = tuple[str, Kind]


class CameraServer:
    """Sockets that publish images while a client has subscribed; else nothing is drawn.

    Args:
        hub: the hub.
    """

    def __init__(self, hub: LabHub) -> None:
        self._hub = hub
        outlets = hub.new_outlets("image", backlog=BACKLOG)
        self._publishers: list[ImagePublisher] = [_AllKinds(outlets)]
        self._next: tuple[LabFace | None, Cameras | None] = (None, None)
        self._present = self._next
        self._cfgs: Mapping[str, LabCameraCfg] = {}
        self._streams: dict[_Stream, Subscription[CameraImage]] = {}
        self._arrived = threading.Event()
        self._listed = 0.0
        self._retry_at = 0.0
        self._error = ""
        self._misses = 0  # times in a row that the model changed meanwhile
        self._num_sent = 0

    @property
    def ports(self) -> list[Outlet]:
        """All ports."""
        return [port for publisher in self._publishers for port in publisher.ports]

    def add(self, publisher: ImagePublisher) -> None:
        """Let a plugin publish, before the thread starts."""
        self._publishers.append(publisher)

    def attach(self, face: LabFace | None, cameras: Cameras | None) -> None:
        """Publish the cameras of another world; may be called in any thread.

        Args:
            face: the world; None for none.
            cameras: its cameras.
        """
        self._next = (face, cameras)

    def counts(self) -> dict[str, int]:
        """Return the number of images that were drawn and sent, and of streams that are wanted."""
        cameras = self._present[1]
        drawn = 0 if cameras is None else cameras.num_drawn
        return {"drawn": drawn, "sent": self._num_sent, "streams": len(self._streams)}

    def run_once(self) -> None:
        """Publish the images that have come; wait a moment for further ones."""
        now = time.monotonic()
        if self._present is not self._next:
            self._switch()
        face, cameras = self._present
        open_ports = [port for port in self.ports if port.poll(now)]
        if face is None or cameras is None or not open_ports:
            self._hub.pause(_IDLE_S)
            return
        try:
            changed = any([outlet.read_subscriptions() for outlet in open_ports])
            if changed or now - self._listed > _LIST_S:
                self._listed = now
                self._cfgs = cameras.cfgs
                self._list()
                self._subscribe(cameras)
        except (VerbError, ValueError) as error:
            self._note_miss(error)
            self._hub.pause(1.0)
            return
        self._arrived.wait(_IDLE_S)
        self._arrived.clear()
        for stream in list(self._streams.values()):
            for image in stream.take():
                for publisher in self._publishers:
                    self._num_sent += publisher.publish(image)
            if stream.error:
                self._tell(stream.error)

    def _list(self) -> None:
        """Tell all publishers which cameras there are, also after one of them has failed."""
        failed = False
        for publisher in self._publishers:
            try:
                publisher.list(self._cfgs)
            except (VerbError, ValueError) as error:
                self._note_miss(error)
                failed = True
        if not failed:
            self._misses = 0

    def _note_miss(self, error: VerbError | ValueError) -> None:
        """Report why cameras are not listed; if the model is being edited, only if that lasts."""
        busy = isinstance(error, VerbError) and error.code == "not_ready"
        self._misses = self._misses + 1 if busy else _MOST_MISSES
        if self._misses >= _MOST_MISSES:
            self._tell(str(error))

    def _switch(self) -> None:
        self._present = self._next
        for stream in self._streams.values():
            stream.close()
        self._streams.clear()
        for publisher in self._publishers:
            publisher.attach(self._present[0])
        self._listed = 0.0
        self._retry_at = 0.0
        self._error = ""

    def _subscribe(self, cameras: Cameras) -> None:
        """Draw what clients want, and nothing else."""
        wanted: set[_Stream] = set()
        for publisher in self._publishers:
            wanted |= publisher.wanted()
        for key, stream in list(self._streams.items()):
            if stream.is_closed:  # the process that draws has ended
                self._tell(stream.error)
                self._retry_at = time.monotonic() + _RETRY_S
            if stream.is_closed or key not in wanted:
                self._streams.pop(key).close()
        if time.monotonic() < self._retry_at:
            return
        for key in sorted(wanted - self._streams.keys()):
            if key[0] in self._cfgs:
                stream = cameras.subscribe(*key)
                stream.on_news = self._arrived.set
                self._streams[key] = stream

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


class _AllKinds:
    """Publishes all cameras, with headers.

    Args:
        ports: its ports.
    """

    def __init__(self, ports: list[Outlet]) -> None:
        self.ports = ports
        self._cameras: tuple[str, ...] = ()

    def attach(self, face: LabFace | None) -> None:
        pass

    def list(self, cameras: Mapping[str, LabCameraCfg]) -> None:
        self._cameras = tuple(cameras)

    def wanted(self) -> set[_Stream]:
        topics = frozenset().union(*(outlet.wanted for outlet in self.ports))
        wanted: set[_Stream] = set()
        for name in self._cameras if topics else ():
            for kind in KINDS:
                topic = image_topic(name, kind)
                if any(topic.startswith(want) for want in topics):
                    wanted.add((name, kind))
        return wanted

    def publish(self, image: CameraImage) -> int:
        topic = image_topic(image.camera, image.kind)
        outlets = [
            outlet for outlet in self.ports if any(topic.startswith(want) for want in outlet.wanted)
        ]
        if outlets:
            message = image_message(image)
            for outlet in outlets:
                outlet.send(*message)
        return len(outlets)
