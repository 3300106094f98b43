"""Bridge from a live world to ROS 2 messages; it runs in a process of its own."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence

from manyworlds.lab.client import LabClient, LabConnectionError, LabError, SessionError, connect
from manyworlds.lab.pictures.camera import Kind
from manyworlds.lab.readers.wire import Message
from manyworlds.plugins.ros2.sinks import Sink
from manyworlds.plugins.ros2.world import RosMessage, RosWorld
from manyworlds.plugins.urlab.fast_path.reader import FastPathReader, PublisherError
from manyworlds.plugins.urlab.fast_path.server import STATE

_WAIT_S = 0.1
_ROUNDING_S = 1e-9
_SILENCE_S = 2.0
_STILL_S = 0.3  # the world stands still
_BACKLOG = 10_000  # states that wait while a large model is loaded
_IMAGES_S = 10.0
_PATIENCE_S = 2.0  # longest time of attempts to connect again
_IMAGES = 8  # images that wait


class RosBridge:
    """Reads the states of a lab, and hands them on as ROS 2 messages.

    Args:
        address: endpoint of the fast path of the lab's server.
        sinks: receivers of the messages.
        rate: largest number of states per simulated second [1/s]; the last state before the
            world stands still comes in any case.
        cameras: cameras of the lab whose images are taken.
        depth: whether to take depth images of them, too.
        camera_rate: largest number of images of each camera per second [1/s].
        tell: receives sentences for people.

    Raises:
        PublisherError: there is no lab at this address.
        LabError: there is no such camera.
        ValueError: a rate is not positive.
    """

    def __init__(
        self,
        address: str,
        sinks: Sequence[Sink],
        *,
        rate: float = 100.0,
        cameras: Sequence[str] = (),
        depth: bool = False,
        camera_rate: float = 10.0,
        tell: Callable[[str], None] = print,
    ) -> None:
        for name, value in (("rate", rate), ("camera_rate", camera_rate)):
            if not value > 0.0:
                raise ValueError(f"{name} must be above 0 per second, got {value}.")
        self._sinks = list(sinks)
        self._period = 1.0 / rate
        self._tell = tell
        self._reader = FastPathReader(address, topics=(STATE,), backlog=_BACKLOG)
        self.num_states = 0
        """Number of states that were handed on."""
        self._next = -1.0
        self._last = 0.0
        self._heard = time.monotonic()
        self._shift = 0.0  # between the times of a file, which ascend, and those of the world
        self._images: ImageReader | None = None
        try:
            self._greet()
            if cameras:
                kinds: tuple[Kind, ...] = ("rgb",)
                if depth:
                    kinds = ("rgb", "depth")
                endpoint = self._scene.requests
                self._images = ImageReader(endpoint, cameras, kinds, 1.0 / camera_rate)
        except BaseException:
            self._reader.close()
            raise

    @property
    def scene(self) -> str:
        """Name of the world, for people."""
        return self._scene.scene

    def run(self, seconds: float | None = None) -> None:
        """Hand on messages for a time [s], or until the lab ends."""
        end = None if seconds is None else time.monotonic() + seconds
        while end is None or time.monotonic() < end:
            came = False
            for _, state in self._reader.receive(_WAIT_S):
                came = True
                self._show(state)
            now = time.monotonic()
            silence = 0.0 if came else now - self._heard
            if silence > _STILL_S and self._skipped is not None:
                self._hand_on(self._skipped)
            if silence > _SILENCE_S:
                self._reader.is_there(raise_error=True)
            if came or silence > _SILENCE_S:
                self._heard = now
            self._show_images()

    def close(self) -> None:
        """Close the connection and the sinks."""
        if self._images is not None:
            self._images.close()
        self._reader.close()
        for sink in self._sinks:
            sink.close()

    def _greet(self) -> None:
        self._scene = self._reader.hello()
        self._skipped: Message | None = None  # the newest state, if it came too early
        if not self._scene.has_state:
            raise PublisherError(
                f"The publisher at {self._reader.address} publishes poses only, as trainings do: "
                "ROS needs a lab, which `manyworlds lab TARGET --serve` starts."
            )
        self._world = RosWorld(self._scene.model, self._scene.robots)

    def _show(self, state: Message) -> None:
        if state["model_id"] != self._scene.model_id:
            self._greet()
            if state["model_id"] != self._scene.model_id:
                return  # of a model that is gone
        now = float(state["t"])
        if self._last <= now < self._next:
            self._skipped = state
        else:
            self._hand_on(state)

    def _hand_on(self, state: Message) -> None:
        self._skipped = None
        now = float(state["t"])
        if now < self._last:
            self._shift += self._last - now
        self._last = now
        self._next = now + self._period - _ROUNDING_S
        self.num_states += 1
        self._put(self._world.messages(state), now + self._shift)

    def _show_images(self) -> None:
        if self._images is None:
            return
        for problem in self._images.problems():
            self._tell(problem)
        for header, content in self._images.take():
            # One that was taken before a reset has a time to come.
            time = min(float(header["time"]), self._last) + self._shift
            self._put(self._world.images(header, content), time)

    def _put(self, messages: Sequence[RosMessage], time: float) -> None:
        for sink in self._sinks:
            for message in messages:
                sink.put(message, time)


class ImageReader:
    """Takes images of cameras of a lab by its client, in a thread of its own.

    Args:
        endpoint: endpoint of the lab's requests.
        cameras: names of the cameras.
        kinds: kinds of the images.
        period: time between two images of a camera [s].

    Raises:
        LabError: the lab does not answer, or there is no such camera.
    """

    def __init__(
        self, endpoint: str, cameras: Sequence[str], kinds: Sequence[Kind], period: float
    ) -> None:
        self._endpoint = endpoint
        self._cameras = cameras
        self._kinds = kinds
        self._period = period
        self._found: queue.Queue[tuple[Message, bytes]] = queue.Queue(_IMAGES)
        self._problems: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._client: LabClient | None = None
        try:
            for camera in cameras:
                self._capture(camera, kinds[0])  # a wrong name fails at once
        except BaseException:
            self._disconnect()
            raise
        self._thread = threading.Thread(target=self._run, name="images", daemon=True)
        self._thread.start()

    def take(self) -> list[tuple[Message, bytes]]:
        """Return the headers and pixels of all images that have come."""
        return [self._found.get() for _ in range(self._found.qsize())]

    def problems(self) -> list[str]:
        """Return the reasons why there are no images, each once."""
        return [self._problems.get() for _ in range(self._problems.qsize())]

    def close(self) -> None:
        """Take no more images."""
        self._stopping.set()
        self._thread.join()
        self._disconnect()

    def _run(self) -> None:
        told = ""
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                for camera in self._cameras:
                    for kind in self._kinds:
                        self._found.put(self._capture(camera, kind), timeout=_IMAGES_S)
            except queue.Full:
                continue  # the reader is busy
            except LabError as error:
                if isinstance(error, SessionError | LabConnectionError):
                    self._disconnect()  # another lab may be there soon
                if str(error) != told:
                    told = str(error)
                    self._problems.put(told)
            self._stopping.wait(max(0.0, began + self._period - time.monotonic()))

    def _capture(self, camera: str, kind: Kind) -> tuple[Message, bytes]:
        if self._client is None:
            self._client = connect(
                self._endpoint,
                role="observer",
                name="manyworlds ros2",
                timeout=_IMAGES_S,
                patience=_PATIENCE_S,
            )
        reply = self._client.capture_camera(camera=camera, kind=kind)
        return reply["header"], reply["data"]

    def _disconnect(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None
