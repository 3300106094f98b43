"""The cameras of a lab, drawn in a process of its own."""

from __future__ import annotations

import contextlib
import itertools
import math
import threading
from collections.abc import Mapping
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from manyworlds.lab.errors import VerbError
from manyworlds.lab.loop.shared_snapshots import pack_snapshot
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.pictures.camera import Kind, LabCameraCfg
from manyworlds.lab.pictures.frame import Frame, JpegFrame
from manyworlds.lab.pictures.hub import CLOSED, RENDER_S
from manyworlds.lab.pictures.program import unpack_frame
from manyworlds.lab.pictures.subscription import Subscription
from manyworlds.lab.readers.reader_process import ReaderProcess
from manyworlds.lab.readers.wire import Message
from manyworlds.utils.gl import gl_environment

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_Wish = tuple[str, Kind, bool]
"""Camera, kind, and whether images come as JPEG files."""


@dataclass(eq=False)
class _Stream:
    """Images of one camera and kind that come from the process."""

    wish: _Wish
    number: int
    subscribers: list[Subscription[Any]] = field(default_factory=list)
    newest: Frame | JpegFrame | None = None
    error: str = ""
    late: int = 0


class CameraProcess(ReaderProcess):
    """Draws and encodes a lab's cameras in a process of its own, from shared memory.

    The process has the model and reads snapshots. Nothing is drawn there without a subscription or
    a call of `render`. If it ends by itself, subscribers get the reason, and the log and the page
    have it, too.

    Args:
        lab: the lab.

    Raises:
        ValueError: the program cannot start.
        RuntimeError: its process ended.
    """

    def __init__(self, lab: LiveLab) -> None:
        self.num_drawn = 0
        """Number of images that were drawn for this process so far."""
        self.problem = ""
        """Sentence about the end of the process, if it has ended by itself."""
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._streams: dict[int, _Stream] = {}
        self._rendering: dict[int, tuple[bool, Future[Any]]] = {}
        self._told: Mapping[str, LabCameraCfg] = {}
        noun = "program that draws cameras"
        super().__init__(str(__package__), noun, {}, gl_environment())
        try:
            self.show(lab)
        except BaseException:
            self.close()
            raise

    def tell_cameras(self, cameras: Mapping[str, LabCameraCfg]) -> None:
        """Draw these cameras from now on."""
        with self._lock:
            if cameras == self._told:
                return
            self._told = dict(cameras)
            plain = {name: camera.to_plain() for name, camera in cameras.items()}
            self._tell("cameras", cameras=plain)

    def subscribe(self, camera: str, kind: Kind, capacity: int) -> Subscription[Frame]:
        """Subscribe to a camera; see `CameraHub.subscribe`."""
        return self._subscribe(camera, kind, capacity, jpeg=False)

    def subscribe_jpeg(self, camera: str, kind: Kind, capacity: int) -> Subscription[JpegFrame]:
        """Subscribe to the images of a camera as JPEG files."""
        return self._subscribe(camera, kind, capacity, jpeg=True)

    def _subscribe(self, camera: str, kind: Kind, capacity: int, jpeg: bool) -> Subscription[Any]:
        subscription = Subscription[Any](camera, kind, capacity, math.inf, math.inf)
        wish = (camera, kind, jpeg)
        with self._lock:
            stream = next((s for s in self._streams.values() if s.wish == wish), None)
            if stream is None:
                stream = _Stream(wish, next(self._numbers))
                self._streams[stream.number] = stream
                names = {"camera": camera, "kind": kind, "jpeg": jpeg}
                self._tell("subscribe", stream=stream.number, **names)
            if stream.newest is not None:
                subscription.put(stream.newest)
            if error := stream.error or self.problem:
                subscription.fail(error)
            stream.subscribers.append(subscription)
        subscription.wake = lambda: self._leave(stream, subscription)
        return subscription

    def render(
        self, camera: str, kind: Kind, snapshot: Snapshot | None, jpeg: bool
    ) -> Frame | JpegFrame:
        """Draw one image now, and wait for it; see `CameraHub.render`.

        Raises:
            VerbError: it cannot be drawn.
        """
        drawn: Future[Any] = Future()
        request: dict[str, object] = {"camera": camera, "kind": kind, "jpeg": jpeg}
        if snapshot is not None:
            request["snapshot"] = pack_snapshot(snapshot)
        assert self._link is not None
        self._link.wait_until_sent()  # otherwise a new world is drawn with the old model
        with self._lock:
            number = next(self._numbers)
            self._rendering[number] = jpeg, drawn
            self._tell("render", number=number, **request)
            problem = self.problem or (CLOSED if self._closing else "")
        try:
            if problem:
                raise VerbError("not_ready", problem)
            return drawn.result(RENDER_S)
        finally:
            with self._lock:
                self._rendering.pop(number, None)

    def newest(self, camera: str, kind: Kind) -> Frame | None:
        """Return the frame that a subscriber of raw images got last; None without one."""
        with self._lock:
            frames = [s.newest for s in self._streams.values() if s.wish == (camera, kind, False)]
        return frames[0] if frames and isinstance(frames[0], Frame) else None

    def close(self) -> None:
        """End the process and all subscriptions; a second call does nothing."""
        super().close()
        if self._link is not None:
            self._link.hide()  # a cycle of references would keep the lab
        self._fail(self.problem or CLOSED)
        for stream in list(self._streams.values()):
            for subscription in list(stream.subscribers):
                subscription.close()

    def hear(self, message: Message) -> bool:
        """Deliver an image, or the reason why there is none."""
        match message["tell"]:
            case "frame":
                self._deliver(message)
            case "no_frames":
                stream = self._streams.get(message["stream"])
                if stream is not None:
                    self._fail_stream(stream, message["text"])
            case "rendered" | "not_rendered":
                self._answer(message)
            case _:
                return False
        return True

    def ended(self, reason: str) -> None:
        """Tell subscribers, and all who wait for an image."""
        text = f"{reason.rstrip('.')}: the next recording or subscription starts it again."
        with self._lock:
            self.problem = text
        self._fail(text)

    def _deliver(self, message: Message) -> None:
        self.num_drawn = message["drawn"]
        stream = self._streams.get(message["stream"])
        if stream is None:
            return  # its last subscriber has left
        frame = unpack_frame(message, jpeg=stream.wish[2])
        with self._lock:
            late, stream.late = message["late"] - stream.late, message["late"]
            stream.newest, stream.error = frame, ""
            subscribers = list(stream.subscribers)
        for subscription in subscribers:
            subscription.begun = True
            subscription.num_late += late
            subscription.put(frame)

    def _answer(self, message: Message) -> None:
        """Give an image, or the reason why there is none, to the one who waits for it."""
        with self._lock:
            found = self._rendering.get(message["number"])
        if found is None:
            return  # nobody waits any more
        jpeg, drawn = found
        with contextlib.suppress(InvalidStateError):  # of `close`, in another thread
            if "error" in message:
                drawn.set_exception(VerbError(*message["error"]))
            else:
                self.num_drawn = message["drawn"]
                drawn.set_result(unpack_frame(message, jpeg))

    def _leave(self, stream: _Stream, subscription: Subscription[Any]) -> None:
        """End a stream with its last subscriber."""
        with self._lock:
            if subscription in stream.subscribers:
                stream.subscribers.remove(subscription)
                if not stream.subscribers:
                    self._streams.pop(stream.number, None)
                    self._tell("unsubscribe", stream=stream.number)

    def _fail(self, text: str) -> None:
        """Tell everyone that no more images come."""
        with self._lock:
            streams, waiting = list(self._streams.values()), list(self._rendering.values())
        for stream in streams:
            self._fail_stream(stream, text)
        for _, drawn in waiting:
            with contextlib.suppress(InvalidStateError):  # it came in the last moment
                drawn.set_exception(VerbError("not_ready", text))

    def _fail_stream(self, stream: _Stream, text: str) -> None:
        with self._lock:
            stream.error = text
            subscribers = list(stream.subscribers)
        for subscription in subscribers:
            subscription.fail(text)
