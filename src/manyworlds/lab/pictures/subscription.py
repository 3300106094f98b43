"""Frames of one camera for one consumer."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from manyworlds.lab.errors import VerbError
from manyworlds.lab.pictures.camera import Kind
from manyworlds.lab.pictures.frame import FrameInfo

AnyFrame = TypeVar("AnyFrame", bound=FrameInfo)


class Subscription(Generic[AnyFrame]):
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
        self._frames: deque[AnyFrame] = deque()
        self._capacity, self._idle_s = capacity, idle_s
        self._asked = time.monotonic()
        self._changed = threading.Condition()
        self._closed = False
        self.begun = False
        """True when the first frame was drawn, which may be delayed."""
        self.wake: Callable[[], None] = lambda: None
        """Called when the subscription was closed, or may be idle no longer."""
        self.on_news: Callable[[], None] = lambda: None
        """Called after each delivery and new `error`, in the thread that delivers."""

    @property
    def is_closed(self) -> bool:
        """True after `close`."""
        return self._closed

    @property
    def is_wanted(self) -> bool:
        """True while the consumer takes frames."""
        return not self._closed and time.monotonic() - self._asked <= self._idle_s

    def get(self, timeout: float | None = None) -> AnyFrame:
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

    def newest(self) -> AnyFrame | None:
        """Return the newest frame that was not returned before, or None; never wait."""
        self._ask()
        with self._changed:
            if not self._frames:
                return None
            frame = self._frames.pop()
            self._frames.clear()
            return frame

    def take(self) -> list[AnyFrame]:
        """Return all frames that wait, the oldest first; never wait."""
        self._ask()
        with self._changed:
            frames = list(self._frames)
            self._frames.clear()
            return frames

    def put(self, frame: AnyFrame) -> None:
        """Deliver a frame."""
        with self._changed:
            self.error = ""
            self.num_frames += 1
            self._frames.append(frame)
            if len(self._frames) > self._capacity:
                self._frames.popleft()
                self.num_dropped += 1
            self._changed.notify_all()
        self.on_news()

    def fail(self, error: str) -> None:
        """Report why there are no frames."""
        if error == self.error:
            return
        with self._changed:
            self.error = error
            self._changed.notify_all()
        self.on_news()

    def close(self) -> None:
        """End the subscription; a second call does nothing."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self.wake()

    def __enter__(self) -> Subscription[AnyFrame]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self) -> None:
        self._asked = time.monotonic()
        if math.isfinite(self._idle_s):
            self.wake()  # drawing may have paused
