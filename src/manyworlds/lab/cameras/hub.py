"""Hub of cameras: draws images for subscribers in its own thread."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np

from manyworlds.lab.cameras.camera import KINDS, Kind, LabCameraCfg
from manyworlds.lab.cameras.frame import Frame
from manyworlds.lab.cameras.painter import Painter
from manyworlds.lab.face import LabFace
from manyworlds.lab.snapshot import Snapshot
from manyworlds.lab.verb_error import VerbError
from manyworlds.utils.gl import gl_available
from manyworlds.utils.platforms import lower_thread_priority

_LOG = logging.getLogger(__name__)
_NICE = 10
"""Reduction of the priority of drawing, so that images are dropped before steps are late."""
_LIST_S = 0.1  # period in which a reader in another process asks for the cameras
_POLLS = 8.0  # looks at the world in one period of the fastest camera
_POLL_S = (0.001, 0.005)
_CLOSED = "The cameras were closed: their lab has stopped."
_RENDER_S = 60.0  # longest wait for an image; the first one compiles shaders

Cameras = Callable[[bool], Mapping[str, LabCameraCfg]]
"""Cameras by name: the present ones for True, perhaps those of a moment ago for False."""


class Subscription:
    """Frames of one camera and kind for one consumer; a slow one loses the oldest.

    Args:
        camera: name of the camera.
        kind: kind of the images.
        capacity: number of frames that wait for the consumer.
        idle_s: time without a call of the consumer after which nothing is drawn for this
            subscription until the next call [s].
        rate: largest number of frames per simulated second, if the camera's is larger [Hz].
    """

    def __init__(self, camera: str, kind: Kind, capacity: int, idle_s: float, rate: float) -> None:
        self.camera, self.rate = camera, rate
        self.kind: Kind = kind
        self.num_frames = 0
        """Number of frames that were delivered."""
        self.num_dropped = 0
        """Number of delivered frames that the consumer was too slow to take."""
        self.num_late = 0
        """Number of frames that were never drawn, because drawing is slower than the rate."""
        self.error = ""
        """Reason why there are no frames; empty if there are."""
        self._frames: deque[Frame] = deque()
        self._capacity, self._idle_s = capacity, idle_s
        self._asked = time.monotonic()
        self._changed = threading.Condition()
        self._closed = False
        self.begun = False
        """True when the first frame was drawn, which may be delayed."""
        self._wake: Callable[[], None] = lambda: None
        self.on_frame: Callable[[], None] = lambda: None
        """Called after each delivery, in the thread that draws."""

    @property
    def is_closed(self) -> bool:
        """True after `close`."""
        return self._closed

    @property
    def is_wanted(self) -> bool:
        """True while the consumer takes frames."""
        return not self._closed and time.monotonic() - self._asked <= self._idle_s

    def get(self, timeout: float | None = None) -> Frame:
        """Wait for the next frame, and return it.

        Args:
            timeout: longest wait [s]; None waits for ever.

        Raises:
            TimeoutError: there was none in time.
            VerbError: the camera cannot be drawn, or the subscription was closed.
        """
        self._ask()
        with self._changed:
            there = self._changed.wait_for(
                lambda: self._frames or self.error or self._closed, timeout
            )
            if self._frames:
                return self._frames.popleft()
            if not there:
                raise TimeoutError(f"Camera '{self.camera}' had no new frame for {timeout} s.")
            raise VerbError("not_ready", self.error or "The subscription was closed.")

    def newest(self) -> Frame | None:
        """Return the newest frame that was not returned before, or None; never wait."""
        self._ask()
        with self._changed:
            if not self._frames:
                return None
            frame = self._frames.pop()
            self._frames.clear()
            return frame

    def take(self) -> list[Frame]:
        """Return all frames that wait, the oldest first; never wait."""
        self._ask()
        with self._changed:
            frames = list(self._frames)
            self._frames.clear()
            return frames

    def put(self, frame: Frame) -> None:
        """Deliver a frame."""
        with self._changed:
            self.error = ""
            self.num_frames += 1
            self._frames.append(frame)
            if len(self._frames) > self._capacity:
                self._frames.popleft()
                self.num_dropped += 1
            self._changed.notify_all()
        self.on_frame()

    def fail(self, error: str) -> None:
        """Report why there are no frames."""
        with self._changed:
            self.error = error
            self._changed.notify_all()

    def close(self) -> None:
        """End the subscription; a second call does nothing."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._wake()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self) -> None:
        self._asked = time.monotonic()
        if math.isfinite(self._idle_s):
            self._wake()  # drawing may have paused


@dataclass(eq=False)
class _Stream:
    """Drawing of one camera for its subscribers."""

    last: Snapshot | None = None
    camera: LabCameraCfg | None = None
    due: float = -math.inf  # simulated time of the next frame [s]
    drawn: float = -math.inf  # wall-clock time of the last drawing [s]
    waiting: deque[tuple[Frame, list[Subscription]]] = field(default_factory=deque)
    """Frames that are delayed, and those that get them."""

    def is_due(self, camera: LabCameraCfg, snapshot: Snapshot, rate: float) -> bool:
        """Return True if a frame of the snapshot is to be drawn at a rate [Hz]."""
        last = self.last
        if last is None or snapshot.time < last.time:  # at first, and after a reset
            return True
        if snapshot.time > last.time:
            return snapshot.time >= self.due - 1e-9
        if camera == self.camera and _looks_alike(snapshot, last):
            return False
        return time.monotonic() - self.drawn >= 1.0 / rate

    def note(self, camera: LabCameraCfg, snapshot: Snapshot, rate: float) -> int:
        """Note that a frame is drawn now; return the number of frames that were left out."""
        period, late = 1.0 / rate, 0
        if self.last is None or snapshot.time < self.last.time or not math.isfinite(self.due):
            self.due = snapshot.time + period
            self.waiting.clear()
        elif snapshot.time >= self.due - 1e-9:
            late = math.floor((snapshot.time - self.due) / period + 1e-6)
            self.due += (late + 1) * period
        self.last, self.camera, self.drawn = snapshot, camera, time.monotonic()
        return late


class CameraHub:
    """Draws the cameras of a live world for subscribers, outside the physics thread.

    Its thread reads the newest snapshot, and draws one after the other what is due. MuJoCo draws
    without the interpreter's lock. Nothing is drawn, and no snapshot is read, without a
    subscription or a call of `render`. The hub may be in the process of the lab, or in a reader's.

    Args:
        face: the live world.
        cameras: function that returns the cameras by name; None asks the lab by its verbs.
        syncs: whether to bring the face's model up to date; False if another reader of the same
            face does.
    """

    def __init__(
        self, face: LabFace, cameras: Cameras | None = None, *, syncs: bool = True
    ) -> None:
        self._face = face
        self._cameras = _Listed(face) if cameras is None else cameras
        self._painter = Painter(face, syncs)
        self.num_drawn = 0
        """Number of images that were drawn."""
        self._wake = threading.Condition()
        self._news = False  # True if there are new subscriptions or requests, or it was closed
        self._subscriptions: list[Subscription] = []
        self._requests: deque[_Request] = deque()
        self._streams: dict[str, _Stream] = {}
        self._newest: dict[tuple[str, Kind], Frame] = {}
        self._closed = False
        self._thread: threading.Thread | None = None

    @property
    def cameras(self) -> Mapping[str, LabCameraCfg]:
        """The cameras, by name."""
        return self._cameras(False)

    def subscribe(
        self,
        camera: str,
        kind: Kind = "rgb",
        *,
        capacity: int = 2,
        idle_s: float = math.inf,
        rate: float = math.inf,
    ) -> Subscription:
        """Subscribe to a camera; one drawing serves all subscribers.

        Args:
            camera: name of the camera.
            kind: kind of the images.
            capacity: number of frames that wait for a slow consumer.
            idle_s: time without a call of the consumer after which drawing pauses [s].
            rate: rate that is enough for the consumer [Hz]; the camera is drawn at the largest one
                that a consumer needs, up to its own.

        Raises:
            VerbError: there is no such camera or kind, or no OpenGL, or the hub was closed.
        """
        self._check(camera, kind)
        subscription = Subscription(camera, kind, capacity, idle_s, rate)
        subscription._wake = self._notify
        with self._wake:
            self._start()
            self._subscriptions.append(subscription)
        self._notify()
        return subscription

    def render(self, camera: str, kind: Kind = "rgb", snapshot: Snapshot | None = None) -> Frame:
        """Draw one image now, whatever the camera's rate and delay are, and wait for it.

        Args:
            camera: name of the camera.
            kind: kind of the image.
            snapshot: snapshot to draw; None takes the newest one.

        Raises:
            VerbError: there is no such camera or kind, or no OpenGL, or the hub was closed.
        """
        self._check(camera, kind)
        request = _Request(camera, kind, snapshot)
        with self._wake:
            self._start()
            self._requests.append(request)
        self._notify()
        return request.future.result(_RENDER_S)

    def newest(self, camera: str, kind: Kind = "rgb") -> Frame | None:
        """Return the frame that was delivered last to a subscriber; None without one."""
        return self._newest.get((camera, kind))

    def close(self) -> None:
        """End the thread and all subscriptions; a second call does nothing."""
        with self._wake:
            self._closed = True
            subscriptions, thread = list(self._subscriptions), self._thread
        self._notify()
        for subscription in subscriptions:
            subscription.close()
        if thread is not None and thread is not threading.current_thread():
            thread.join(_RENDER_S)

    def _check(self, camera: str, kind: Kind) -> None:
        known = self._cameras(True)
        if camera not in known:
            raise unknown_camera(camera, known)
        if kind not in KINDS:
            raise VerbError("bad_value", f"kind must be one of {', '.join(KINDS)}, got '{kind}'.")
        if (reason := gl_available()) is not None:
            raise VerbError("no_gl", reason)

    def _start(self) -> None:
        if self._closed:
            raise VerbError("not_ready", _CLOSED)
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="manyworlds-cameras", daemon=True
            )
            self._thread.start()

    def _notify(self) -> None:
        with self._wake:
            self._news = True
            self._wake.notify()

    def _run(self) -> None:
        lower_thread_priority(_NICE)  # OpenGL's own threads, which it starts, inherit it
        period: float | None = None
        try:
            while self._wait(period):
                for request in self._take_requests():
                    request.answer(self._draw_requested)
                wanted = [s for s in self._subscriptions if s.is_wanted]
                try:
                    period = self._serve(wanted)
                except Exception as error:  # of the face: the lab has ended
                    self._fail(wanted, error)
                    period = _LIST_S
        finally:
            self._painter.close()
            for request in self._take_requests():
                request.future.set_exception(VerbError("not_ready", _CLOSED))

    def _wait(self, period: float | None) -> bool:
        """Wait until there may be work; return False at the end."""
        with self._wake:
            self._wake.wait_for(lambda: self._news, period)
            self._news = False
            self._subscriptions = [s for s in self._subscriptions if not s.is_closed]
            return not self._closed

    def _take_requests(self) -> list[_Request]:
        with self._wake:
            taken = list(self._requests)
            self._requests.clear()
        return taken

    def _draw_requested(self, request: _Request) -> Frame:
        camera = self.cameras.get(request.camera)
        if camera is None:
            raise VerbError("unknown_camera", _removed(request.camera))
        self._painter.sync()
        snapshot = self._face.snapshot if request.snapshot is None else request.snapshot
        if not self._painter.show(snapshot):
            raise VerbError("not_ready", "The world was rebuilt: take a new snapshot.")
        (frame,) = self._painter.draw(camera, [request.kind], snapshot)
        self.num_drawn += 1
        return frame

    def _serve(self, wanted: Sequence[Subscription]) -> float | None:
        """Draw what is due for subscribers; return the time until the next look at the world [s].

        Returns None if nobody wants frames.
        """
        if not wanted:
            self._streams.clear()
            self._newest.clear()
            return None
        by_name: dict[str, list[Subscription]] = {}
        for subscription in wanted:
            by_name.setdefault(subscription.camera, []).append(subscription)
        cameras = self.cameras
        self._painter.sync()
        rate = 1.0 / (_POLLS * _LIST_S)
        for name, subscriptions in by_name.items():
            camera = cameras.get(name)
            if camera is None or not camera.enabled:
                reason = f"Camera '{name}' is switched off." if camera else _removed(name)
                self._fail(subscriptions, VerbError("not_ready", reason))
                self._streams.pop(name, None)
                continue
            rate = max(rate, camera.rate)
            try:
                self._advance(camera, subscriptions)
            except Exception as error:
                self._fail(subscriptions, error)
        low, high = _POLL_S
        return min(max(1.0 / (_POLLS * rate), low), high)

    def _fail(self, subscriptions: Sequence[Subscription], error: Exception) -> None:
        """Report why there are no frames; log errors that are nobody's input."""
        if not isinstance(error, VerbError) and any(s.error != str(error) for s in subscriptions):
            _LOG.error("Cameras cannot be drawn.", exc_info=error)
        for subscription in subscriptions:
            subscription.fail(str(error))

    def _advance(self, camera: LabCameraCfg, subscriptions: list[Subscription]) -> None:
        """Draw a camera if it is due, and deliver its frames."""
        stream = self._streams.setdefault(camera.name, _Stream())
        snapshot = self._face.snapshot
        rate = min(camera.rate, max(s.rate for s in subscriptions))
        due = stream.is_due(camera, snapshot, rate)
        takers = subscriptions if due else [s for s in subscriptions if not s.begun]
        if takers and self._painter.show(snapshot):
            late = stream.note(camera, snapshot, rate) if due else 0
            kinds: dict[Kind, None] = {s.kind: None for s in takers}
            for frame in self._painter.draw(camera, kinds, snapshot):
                stream.waiting.append((frame, [s for s in takers if s.kind == frame.kind]))
            self.num_drawn += len(kinds)
            for subscription in takers:
                subscription.begun = True
                subscription.num_late += late
        while stream.waiting and snapshot.time >= stream.waiting[0][0].time + camera.delay - 1e-9:
            frame, takers = stream.waiting.popleft()
            self._newest[frame.camera, frame.kind] = frame
            for subscription in takers:
                subscription.put(frame)


@dataclass(eq=False)
class _Request:
    """One image that a caller waits for."""

    camera: str
    kind: Kind
    snapshot: Snapshot | None
    future: Future[Frame] = field(default_factory=Future)

    def answer(self, draw: Callable[[_Request], Frame]) -> None:
        """Draw the image, and give it to the caller."""
        try:
            self.future.set_result(draw(self))
        except Exception as error:
            self.future.set_exception(error)


class _Listed:
    """Cameras of a lab in another process.

    Args:
        face: the lab.
    """

    def __init__(self, face: LabFace) -> None:
        self._face = face
        self._cameras: dict[str, LabCameraCfg] = {}
        self._asked = -math.inf
        self._lock = threading.Lock()

    def __call__(self, fresh: bool) -> Mapping[str, LabCameraCfg]:
        """Return the cameras, by name."""
        with self._lock:
            if fresh or time.monotonic() - self._asked > _LIST_S:
                reply = self._face.call("list_cameras")["cameras"]
                assert isinstance(reply, dict)
                self._cameras = {n: LabCameraCfg.from_plain(plain) for n, plain in reply.items()}
                self._asked = time.monotonic()
            return self._cameras


def unknown_camera(name: str, known: Iterable[str]) -> VerbError:
    """Return the error of a name that no camera has."""
    from manyworlds.lab.verbs.fields import near

    names = ", ".join(known) or "there is none: add one"
    return VerbError("unknown_camera", f"There is no camera '{name}' ({names}){near(name, known)}")


def _removed(camera: str) -> str:
    return f"There is no camera '{camera}' any more."


def _looks_alike(one: Snapshot, other: Snapshot) -> bool:
    """Return True if two snapshots give the same image."""
    if one is other or one.frame_id == other.frame_id:
        return True
    fields = ("qpos", "mocap_pos", "mocap_quat")
    return one.model_version == other.model_version and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in fields
    )
