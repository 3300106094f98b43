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

from manyworlds.lab.errors import VerbError
from manyworlds.lab.face import LabFace
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.pictures.camera import KINDS, Kind, LabCameraCfg
from manyworlds.lab.pictures.frame import Frame
from manyworlds.lab.pictures.painter import Painter
from manyworlds.lab.pictures.subscription import Subscription
from manyworlds.utils.gl import gl_available
from manyworlds.utils.platforms import lower_thread_priority

_LOG = logging.getLogger(__name__)
_NICE = 10
"""Reduction of the priority of drawing, so that images are dropped before steps are late."""
_LIST_S = 0.1  # period in which a reader in another process asks for the cameras
_POLLS = 8.0  # looks at the world in one period of the fastest camera
_POLL_S = (0.001, 0.005)
CLOSED = "The cameras were closed: their lab has stopped."
RENDER_S = 60.0
"""Longest wait for an image; the first one compiles shaders [s]."""

Cameras = Callable[[bool], Mapping[str, LabCameraCfg]]
"""Cameras by name: the present ones for True, perhaps those of a moment ago for False."""


@dataclass(eq=False)
class _Stream:
    """Drawing of one camera for its subscribers."""

    last: Snapshot | None = None
    camera: LabCameraCfg | None = None
    due: float = -math.inf  # simulated time of the next frame [s]
    drawn: float = -math.inf  # wall-clock time of the last drawing [s]
    waiting: deque[tuple[Frame, list[Subscription[Frame]]]] = field(default_factory=deque)
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
        self._subscriptions: list[Subscription[Frame]] = []
        self._requests: deque[_Request] = deque()
        self._streams: dict[str, _Stream] = {}
        self._newest: dict[tuple[str, Kind], Frame] = {}
        self._closed = False
        self._thread: threading.Thread | None = None

    @property
    def cameras(self) -> Mapping[str, LabCameraCfg]:
        """The cameras, by name; those of a lab in another process are a tenth of a second old."""
        return self._cameras(False)

    def list_cameras(self) -> Mapping[str, LabCameraCfg]:
        """Return the present cameras, by name."""
        return self._cameras(True)

    def subscribe(
        self,
        camera: str,
        kind: Kind = "rgb",
        *,
        capacity: int = 2,
        idle_s: float = math.inf,
        rate: float = math.inf,
    ) -> Subscription[Frame]:
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
        check_wish(camera, kind, self._cameras(True))
        subscription = Subscription[Frame](camera, kind, capacity, idle_s, rate)
        subscription.wake = self._notify
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
        return self.request(camera, kind, snapshot).result(RENDER_S)

    def request(
        self, camera: str, kind: Kind = "rgb", snapshot: Snapshot | None = None
    ) -> Future[Frame]:
        """Return the image of `render` as a future, which the thread that draws resolves.

        Raises:
            VerbError: there is no such camera or kind, or no OpenGL, or the hub was closed.
        """
        check_wish(camera, kind, self._cameras(True))
        request = _Request(camera, kind, snapshot)
        with self._wake:
            self._start()
            self._requests.append(request)
        self._notify()
        return request.future

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
            thread.join(RENDER_S)

    def _start(self) -> None:
        if self._closed:
            raise VerbError("not_ready", CLOSED)
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
                request.future.set_exception(VerbError("not_ready", CLOSED))

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

    def _serve(self, wanted: Sequence[Subscription[Frame]]) -> float | None:
        """Draw what is due for subscribers; return the time until the next look at the world [s].

        Returns None if nobody wants frames.
        """
        if not wanted:
            self._streams.clear()
            self._newest.clear()
            return None
        by_name: dict[str, list[Subscription[Frame]]] = {}
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

    def _fail(self, subscriptions: Sequence[Subscription[Frame]], error: Exception) -> None:
        """Report why there are no frames; log errors that are nobody's input."""
        if not isinstance(error, VerbError) and any(s.error != str(error) for s in subscriptions):
            _LOG.error("Cameras cannot be drawn.", exc_info=error)
        for subscription in subscriptions:
            subscription.fail(str(error))

    def _advance(self, camera: LabCameraCfg, subscriptions: list[Subscription[Frame]]) -> None:
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
                listed = self._face.verbs.list_cameras()["cameras"]
                self._cameras = {n: LabCameraCfg.from_plain(plain) for n, plain in listed.items()}
                self._asked = time.monotonic()
            return self._cameras


def check_wish(camera: str, kind: str, known: Mapping[str, LabCameraCfg]) -> None:
    """Check that an image can be drawn.

    Raises:
        VerbError: there is no such camera or kind, or no OpenGL.
    """
    if camera not in known:
        raise unknown_camera(camera, known)
    if kind not in KINDS:
        raise VerbError("bad_value", f"kind must be one of {', '.join(KINDS)}, got '{kind}'.")
    if (reason := gl_available()) is not None:
        raise VerbError("no_gl", reason)


def unknown_camera(name: str, known: Iterable[str]) -> VerbError:
    """Return the error of a name that no camera has."""
    from manyworlds.lab.errors import near

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
