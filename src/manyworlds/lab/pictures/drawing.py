"""Drawing of cameras for subscribers, in a thread of its own; see `CameraProgram`."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np

from manyworlds.lab.errors import VerbError
from manyworlds.lab.face import LabFace
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.pictures.camera import Kind, LabCameraCfg, check_request, list_cameras
from manyworlds.lab.pictures.image import CameraImage
from manyworlds.lab.pictures.painter import Painter
from manyworlds.lab.pictures.subscription import CLOSED, RENDER_S, Subscription
from manyworlds.utils.platforms import lower_thread_priority

_LOG = logging.getLogger(__name__)
NICENESS = 10
"""Reduction of the priority of drawing, so that images are dropped before steps are late."""
_LIST_S = 0.1  # period in which the cameras of a lab in another process are asked for
_POLLS = 8.0  # looks at the world in one period of the fastest camera
_MIN_POLL_S = 0.001
_MAX_POLL_S = 0.005

CameraList = Callable[[bool], Mapping[str, LabCameraCfg]]
"""Returns the cameras by name: the present ones for True, perhaps those of a moment ago for
False."""


@dataclass(eq=False)
class _Stream:
    """Drawing of one camera for its subscribers."""

    last: Snapshot | None = None
    camera: LabCameraCfg | None = None
    due: float = -math.inf  # simulated time of the next image [s]
    drawn: float = -math.inf  # wall-clock time of the last drawing [s]
    waiting: deque[tuple[CameraImage, list[Subscription[CameraImage]]]] = field(
        default_factory=deque
    )
    """Images that are delayed, and those that get them."""

    def is_due(self, camera: LabCameraCfg, snapshot: Snapshot, rate: float) -> bool:
        """Return True if an image of the snapshot is to be drawn at a rate [Hz]."""
        last = self.last
        if last is None or snapshot.time < last.time:  # at first, and after a reset
            return True
        if snapshot.time > last.time:
            return snapshot.time >= self.due - 1e-9
        if camera == self.camera and _looks_alike(snapshot, last):
            return False
        return time.monotonic() - self.drawn >= 1.0 / rate

    def note(self, camera: LabCameraCfg, snapshot: Snapshot, rate: float) -> int:
        """Note that an image is drawn now; return the number of images that were left out."""
        period = 1.0 / rate
        late = 0
        if self.last is None or snapshot.time < self.last.time or not math.isfinite(self.due):
            self.due = snapshot.time + period
            self.waiting.clear()
        elif snapshot.time >= self.due - 1e-9:
            late = math.floor((snapshot.time - self.due) / period + 1e-6)
            self.due += (late + 1) * period
        self.last = snapshot
        self.camera = camera
        self.drawn = time.monotonic()
        return late


class CameraDrawer:
    """Draws the cameras of a live world for subscribers, outside the physics thread.

    Its thread reads the newest snapshot, and draws one after the other what is due. MuJoCo draws
    without the interpreter's lock. Nothing is drawn, and no snapshot is read, without a
    subscription or a call of `render`. For all users of a lab, one drawer draws, in a process of
    its own: `lab.cameras` has its images. A drawer of a user's own needs an OpenGL context more.

    Args:
        face: the live world.
        cameras: function that returns the cameras by name; None asks the lab by its verbs.
        syncs: whether to bring the face's model up to date; False if another reader of the same
            face does.
    """

    def __init__(
        self, face: LabFace, cameras: CameraList | None = None, *, syncs: bool = True
    ) -> None:
        self._face = face
        self._cameras = _ListedCameras(face) if cameras is None else cameras
        self._painter = Painter(face, syncs)
        self.num_drawn = 0
        """Number of images that were drawn."""
        self._wake = threading.Condition()
        self._news = False  # True if there are new subscriptions or requests, or it was closed
        self._subscriptions: list[Subscription[CameraImage]] = []
        self._requests: deque[_Request] = deque()
        self._streams: dict[str, _Stream] = {}
        self._newest: dict[tuple[str, Kind], CameraImage] = {}
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
    ) -> Subscription[CameraImage]:
        """Subscribe to a camera; see `FaceCameras.subscribe`.

        Raises:
            VerbError: there is no such camera or kind, or no OpenGL, or the drawer was closed.
        """
        check_request(camera, kind, self._cameras(True))
        subscription = Subscription[CameraImage](camera, kind, capacity, idle_s, rate)
        subscription.wake = self._notify
        with self._wake:
            self._start()
            self._subscriptions.append(subscription)
        self._notify()
        return subscription

    def render(
        self, camera: str, kind: Kind = "rgb", snapshot: Snapshot | None = None
    ) -> CameraImage:
        """Draw one image now, and wait for it; see `FaceCameras.render`.

        Raises:
            VerbError: there is no such camera or kind, or no OpenGL, or the drawer was closed.
        """
        return self.request(camera, kind, snapshot).result(RENDER_S)

    def request(
        self, camera: str, kind: Kind = "rgb", snapshot: Snapshot | None = None
    ) -> Future[CameraImage]:
        """Return the image of `render` as a future, which the thread that draws resolves.

        Raises:
            VerbError: there is no such camera or kind, or no OpenGL, or the drawer was closed.
        """
        check_request(camera, kind, self._cameras(True))
        request = _Request(camera, kind, snapshot)
        with self._wake:
            self._start()
            self._requests.append(request)
        self._notify()
        return request.future

    def newest(self, camera: str, kind: Kind = "rgb") -> CameraImage | None:
        """Return the image that was delivered last to a subscriber; None without one."""
        return self._newest.get((camera, kind))

    def close(self) -> None:
        """End the thread and all subscriptions; a second call does nothing."""
        with self._wake:
            self._closed = True
            subscriptions = list(self._subscriptions)
            thread = self._thread
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
        lower_thread_priority(NICENESS)  # OpenGL's own threads, which it starts, inherit it
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

    def _draw_requested(self, request: _Request) -> CameraImage:
        camera = self.cameras.get(request.camera)
        if camera is None:
            raise VerbError("unknown_camera", _removed(request.camera))
        self._painter.sync()
        snapshot = self._face.snapshot if request.snapshot is None else request.snapshot
        if not self._painter.show(snapshot):
            raise VerbError("not_ready", "The world was rebuilt: take a new snapshot.")
        (image,) = self._painter.draw(camera, [request.kind], snapshot)
        self.num_drawn += 1
        return image

    def _serve(self, wanted: Sequence[Subscription[CameraImage]]) -> float | None:
        """Draw what is due for subscribers; return the time until the next look at the world [s].

        Returns None if nobody wants images.
        """
        if not wanted:
            self._streams.clear()
            self._newest.clear()
            return None
        by_name: dict[str, list[Subscription[CameraImage]]] = {}
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
        return min(max(1.0 / (_POLLS * rate), _MIN_POLL_S), _MAX_POLL_S)

    def _fail(self, subscriptions: Sequence[Subscription[CameraImage]], error: Exception) -> None:
        """Report why there are no images; log errors that are nobody's input."""
        if not isinstance(error, VerbError) and any(s.error != str(error) for s in subscriptions):
            _LOG.error("Cameras cannot be drawn.", exc_info=error)
        for subscription in subscriptions:
            subscription.fail(str(error))

    def _advance(
        self, camera: LabCameraCfg, subscriptions: list[Subscription[CameraImage]]
    ) -> None:
        """Draw a camera if it is due, and deliver its images."""
        stream = self._streams.setdefault(camera.name, _Stream())
        snapshot = self._face.snapshot
        rate = min(camera.rate, max(s.rate for s in subscriptions))
        due = stream.is_due(camera, snapshot, rate)
        takers = subscriptions if due else [s for s in subscriptions if not s.begun]
        if takers and self._painter.show(snapshot):
            late = stream.note(camera, snapshot, rate) if due else 0
            kinds: dict[Kind, None] = {s.kind: None for s in takers}
            for image in self._painter.draw(camera, kinds, snapshot):
                stream.waiting.append((image, [s for s in takers if s.kind == image.kind]))
            self.num_drawn += len(kinds)
            for subscription in takers:
                subscription.begun = True
                subscription.num_late += late
        while stream.waiting and snapshot.time >= stream.waiting[0][0].time + camera.delay - 1e-9:
            image, takers = stream.waiting.popleft()
            self._newest[image.camera, image.kind] = image
            for subscription in takers:
                subscription.put(image)


CameraHub = CameraDrawer
"""Former name of `CameraDrawer`."""


@dataclass(eq=False)
class _Request:
    """One image that a caller waits for."""

    camera: str
    kind: Kind
    snapshot: Snapshot | None
    future: Future[CameraImage] = field(default_factory=Future)

    def answer(self, draw: Callable[[_Request], CameraImage]) -> None:
        """Draw the image, and give it to the caller."""
        try:
            self.future.set_result(draw(self))
        except Exception as error:
            self.future.set_exception(error)


class _ListedCameras:
    """Cameras of a lab in another process.

    Args:
        face: the lab.
    """

    def __init__(self, face: LabFace) -> None:
        self._face = face
        self._cameras: Mapping[str, LabCameraCfg] = {}
        self._asked = -math.inf
        self._lock = threading.Lock()

    def __call__(self, fresh: bool) -> Mapping[str, LabCameraCfg]:
        """Return the cameras, by name."""
        with self._lock:
            if fresh or time.monotonic() - self._asked > _LIST_S:
                self._cameras = list_cameras(self._face)
                self._asked = time.monotonic()
            return self._cameras


def _removed(camera: str) -> str:
    return f"There is no camera '{camera}' any more."


def _looks_alike(one: Snapshot, other: Snapshot) -> bool:
    """Return True if two snapshots give the same image."""
    if one is other or one.frame_id == other.frame_id:
        return True
    if one.model_version != other.model_version:
        return False
    fields = ("qpos", "mocap_pos", "mocap_quat")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in fields)
