"""Images of a lab's cameras, for every process that wants some.

One process draws the images of a lab, see `CameraProgram`. A reader of images asks the lab for
them, and gets them from that process through a socket:

| request of the reader to the lab | meaning |
|---|---|
| `check`: camera, kind | is this possible? The process that draws is started if there is none |
| `connect`, with a socket | send the images of this reader through the socket |
| `subscribe`: stream, camera, kind, jpeg, rate | begin a stream |
| `unsubscribe`: stream | end a stream |
| `render`: number, camera, kind, jpeg, snapshot | draw one image |
| `why`: process | why do no more images come? |
"""

from __future__ import annotations

import contextlib
import itertools
import math
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from manyworlds.lab.errors import VerbError
from manyworlds.lab.face import LabFace
from manyworlds.lab.loop.shared_snapshots import pack_snapshot
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.pictures.camera import Kind, LabCameraCfg, list_cameras
from manyworlds.lab.pictures.image import CameraImage, JpegImage, decode_image
from manyworlds.lab.pictures.subscription import CLOSED, RENDER_S, Subscription
from manyworlds.lab.readers.wire import Message, Wire, pack

_Wish = tuple[str, Kind, bool, float]
"""Camera, kind, whether images come as JPEG files, and the largest rate [Hz]."""


@dataclass(frozen=True, eq=False)
class _Channel:
    """Socket through which images come."""

    wire: Wire
    process: int
    """Id of the process that draws."""
    reader: int
    """Number of this reader of images for the lab."""


@dataclass(eq=False)
class _Stream:
    """Images of one wish that come through a channel."""

    wish: _Wish
    number: int
    channel: _Channel
    subscribers: list[Subscription[Any]] = field(default_factory=list)
    is_drawn: bool = False
    """True while the process that draws sends images."""
    newest: CameraImage | JpegImage | None = None
    error: str = ""
    late: int = 0


class Cameras(ABC):
    """Cameras of a lab, as one reader of images sees them; any thread may call the methods."""

    def __init__(self) -> None:
        self.num_drawn = 0
        """Number of images that were drawn for this reader."""
        self._numbers = itertools.count()
        self._channel: _Channel | None = None
        self._listener: threading.Thread | None = None
        self._streams: dict[int, _Stream] = {}
        self._rendering: dict[int, tuple[_Channel, bool, Future[Any]]] = {}
        self._is_over = False
        self._connecting = threading.Lock()
        self._asking = threading.Lock()  # otherwise the end of a stream could precede its begin
        self._changing = threading.Lock()  # held for moments, and over no request

    @property
    @abstractmethod
    def cfgs(self) -> Mapping[str, LabCameraCfg]:
        """Present settings of all cameras, by name."""

    @abstractmethod
    def _ask(self, request: Message, descriptor: int | None = None) -> Message:
        """Send a request to the lab, and return its reply.

        Args:
            request: the request.
            descriptor: file descriptor of a socket that the lab gets.

        Raises:
            VerbError: the lab refuses.
        """

    def subscribe(
        self,
        name: str,
        kind: Kind = "rgb",
        *,
        capacity: int = 2,
        idle_s: float = math.inf,
        rate: float = math.inf,
    ) -> Subscription[CameraImage]:
        """Subscribe to the images of a camera; one drawing serves all subscribers.

        Args:
            name: name of the camera.
            kind: kind of the images.
            capacity: number of images that wait for a slow consumer.
            idle_s: time without a call of the consumer after which drawing pauses [s].
            rate: rate that is enough for the consumer [Hz]; the camera is drawn at the largest one
                that a consumer needs, up to its own.

        Raises:
            VerbError: there is no such camera or kind, or no OpenGL, or the lab has stopped.
        """
        return self._subscribe((name, kind, False, rate), capacity, idle_s)

    def subscribe_jpeg(
        self, name: str, kind: Kind = "rgb", *, capacity: int = 2
    ) -> Subscription[JpegImage]:
        """Subscribe to the images of a camera as JPEG files; see `subscribe`."""
        return self._subscribe((name, kind, True, math.inf), capacity, math.inf)

    def render(
        self, name: str, kind: Kind = "rgb", snapshot: Snapshot | None = None
    ) -> CameraImage:
        """Draw one image now, whatever the camera's rate and delay are, and wait for it.

        Args:
            name: name of the camera.
            kind: kind of the image.
            snapshot: snapshot to draw; None takes the newest one.

        Raises:
            VerbError: there is no such camera or kind, or no OpenGL, or the lab has stopped.
        """
        return self._render(name, kind, snapshot, jpeg=False)

    def render_jpeg(self, name: str, kind: Kind = "rgb") -> JpegImage:
        """Draw one image of the newest snapshot as a JPEG file; see `render`."""
        return self._render(name, kind, None, jpeg=True)

    def newest(self, name: str, kind: Kind = "rgb") -> CameraImage | None:
        """Return the image that a subscriber of raw images got last; None without one."""
        with self._changing:
            for stream in self._streams.values():
                if stream.wish[:3] == (name, kind, False):
                    return cast("CameraImage | None", stream.newest)
        return None

    def close(self) -> None:
        """End all subscriptions of this reader; a second call does nothing."""
        with self._connecting:
            self._is_over = True
            channel = self._channel
            listener = self._listener
        with self._changing:
            streams = list(self._streams.values())
        if channel is not None:
            channel.wire.close()
        if listener is not None and listener is not threading.current_thread():
            listener.join(RENDER_S)
        for stream in streams:
            for subscription in list(stream.subscribers):
                subscription.close()

    def _subscribe(self, wish: _Wish, capacity: int, idle_s: float) -> Subscription[Any]:
        camera, kind, _, rate = wish
        channel = self._connect(camera, kind)
        subscription = Subscription[Any](camera, kind, capacity, idle_s, rate)
        with self._changing:
            stream = self._find_stream(wish, channel)
            if stream.newest is not None:
                subscription.put(stream.newest)
            if stream.error:
                subscription.fail(stream.error)
            stream.subscribers.append(subscription)
        subscription.wake = lambda: self._update(stream)
        if self._channel is channel:
            self._update(stream)
        else:
            self._end(channel)  # it ended in between
        return subscription

    def _find_stream(self, wish: _Wish, channel: _Channel) -> _Stream:
        for stream in self._streams.values():
            if stream.wish == wish and stream.channel is channel:
                return stream
        stream = _Stream(wish, next(self._numbers), channel)
        self._streams[stream.number] = stream
        return stream

    def _update(self, stream: _Stream) -> None:
        """Begin or end a stream, as its subscribers want it at present."""
        with self._asking:
            with self._changing:
                if stream.number not in self._streams:
                    return  # the process that draws has ended
                stream.subscribers = [s for s in stream.subscribers if not s.is_closed]
                is_wanted = any(s.is_wanted for s in stream.subscribers)
                if not stream.subscribers:
                    del self._streams[stream.number]
                if is_wanted == stream.is_drawn:
                    return
                stream.is_drawn = is_wanted
                stream.newest = None  # it is old when the stream begins again
                stream.late = 0
            numbers = {"reader": stream.channel.reader, "stream": stream.number}
            try:
                if not is_wanted:
                    self._ask({"do": "unsubscribe", **numbers})
                    return
                camera, kind, jpeg, rate = stream.wish
                wish = {"camera": camera, "kind": kind, "jpeg": jpeg, "rate": rate}
                self._ask({"do": "subscribe", **numbers, **wish})
            except VerbError as error:
                self._fail_stream(stream, str(error))

    def _render(self, camera: str, kind: Kind, snapshot: Snapshot | None, jpeg: bool) -> Any:
        channel = self._channel or self._connect(camera, kind)
        request: Message = {"camera": camera, "kind": kind, "jpeg": jpeg}
        if snapshot is not None:
            request["snapshot"] = pack(pack_snapshot(snapshot))
        drawn: Future[Any] = Future()
        with self._changing:
            number = next(self._numbers)
            self._rendering[number] = (channel, jpeg, drawn)
        try:
            if self._channel is not channel:
                self._end(channel)  # it ended in between
            self._ask({"do": "render", "reader": channel.reader, "number": number, **request})
            return drawn.result(RENDER_S)
        finally:
            with self._changing:
                self._rendering.pop(number, None)

    def _connect(self, camera: str, kind: str) -> _Channel:
        """Return the channel to the process that draws, which is started if there is none.

        Raises:
            VerbError: there is no such camera or kind, or no OpenGL, or the lab has stopped.
        """
        with self._connecting:
            if self._is_over:
                raise VerbError("not_ready", CLOSED)
            process = self._ask({"do": "check", "camera": camera, "kind": kind})["process"]
            channel = self._channel
            if channel is not None and channel.process == process:
                return channel
            near, far = socket.socketpair()
            with far:
                try:
                    reader = self._ask({"do": "connect"}, far.fileno())["reader"]
                except BaseException:
                    near.close()
                    raise
            channel = _Channel(Wire(near), process, reader)
            self._channel = channel
            self._listener = threading.Thread(
                target=self._listen, args=(channel,), name="manyworlds-images", daemon=True
            )
            self._listener.start()
            return channel

    def _listen(self, channel: _Channel) -> None:
        with contextlib.suppress(EOFError):
            while True:
                self._take(channel.wire.receive())
        if self._channel is channel:
            self._channel = None
        channel.wire.close()
        self._end(channel)

    def _take(self, message: Message) -> None:
        """Deliver an image, or the reason why there is none."""
        match message["tell"]:
            case "image":
                self._deliver(message)
            case "no_images":
                with self._changing:
                    stream = self._streams.get(message["stream"])
                if stream is not None:
                    self._fail_stream(stream, message["text"])
            case "rendered" | "not_rendered":
                self._answer(message)

    def _deliver(self, message: Message) -> None:
        self.num_drawn += 1
        with self._changing:
            stream = self._streams.get(message["stream"])
            if stream is None or not stream.is_drawn:
                return  # its last subscriber has left
            image = _unpack_image(message, stream.wish[2])
            late = max(message["late"] - stream.late, 0)
            stream.late = message["late"]
            stream.newest = image
            stream.error = ""
            subscribers = list(stream.subscribers)
        for subscription in subscribers:
            subscription.begun = True
            subscription.num_late += late
            subscription.put(image)
        if not any(subscription.is_wanted for subscription in subscribers):
            self._update(stream)  # all of them are idle

    def _answer(self, message: Message) -> None:
        """Give an image, or the reason why there is none, to the one who waits for it."""
        with self._changing:
            found = self._rendering.get(message["number"])
        if found is None:
            return  # nobody waits any more
        _, jpeg, drawn = found
        with contextlib.suppress(InvalidStateError):  # the one who waited has given up
            if "error" in message:
                drawn.set_exception(VerbError(*message["error"]))
            else:
                self.num_drawn += 1
                drawn.set_result(_unpack_image(message, jpeg))

    def _end(self, channel: _Channel) -> None:
        """Tell all who wait for images of a channel that no more come."""
        try:
            text = CLOSED if self._is_over else self._ask_why(channel)
        except VerbError as error:
            text = str(error)
        with self._changing:
            streams = [s for s in self._streams.values() if s.channel is channel]
            for stream in streams:
                del self._streams[stream.number]
            waiting = [drawn for used, _, drawn in self._rendering.values() if used is channel]
        for stream in streams:
            self._fail_stream(stream, text)
            for subscription in stream.subscribers:
                subscription.close()
        for drawn in waiting:
            with contextlib.suppress(InvalidStateError):  # it came in the last moment
                drawn.set_exception(VerbError("not_ready", text))

    def _ask_why(self, channel: _Channel) -> str:
        return self._ask({"do": "why", "process": channel.process})["text"]

    def _fail_stream(self, stream: _Stream, text: str) -> None:
        with self._changing:
            stream.error = text
            subscribers = list(stream.subscribers)
        for subscription in subscribers:
            subscription.fail(text)


class DrawnLab(Protocol):
    """A lab whose images a process of its own draws: `LiveLab` or `RemoteLab`."""

    def ask_for_images(self, request: Message, descriptor: int | None = None) -> Message:
        """Carry out a request of a reader of images, and return its reply.

        Args:
            request: the request, see `manyworlds.lab.pictures.cameras`.
            descriptor: file descriptor of the socket of a new reader; the caller closes it.

        Raises:
            VerbError: there is no such camera or kind, or no OpenGL, or the lab has stopped.
        """
        ...


class FaceCameras(Cameras):
    """Cameras of a lab, for a page or a server, in the lab's process or in their own.

    Args:
        face: the lab.
    """

    def __init__(self, face: LabFace) -> None:
        super().__init__()
        self._face = face

    @property
    def cfgs(self) -> Mapping[str, LabCameraCfg]:
        """Present settings of all cameras, by name."""
        return list_cameras(self._face)

    def _ask(self, request: Message, descriptor: int | None = None) -> Message:
        return cast(DrawnLab, self._face).ask_for_images(request, descriptor)


def _unpack_image(message: Message, jpeg: bool) -> CameraImage | JpegImage:
    """Return the image of a message of the process that draws."""
    header = message["header"]
    pixels = message["payload"]
    if not jpeg:
        return CameraImage.from_header(header, image=decode_image(header, pixels))
    sizes = {name: header[name] for name in ("width", "height", "channels", "dtype")}
    return JpegImage.from_header(header, **sizes, data=bytes(pixels))
