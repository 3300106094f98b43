"""Images of one camera for one consumer."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from manyworlds.lab.errors import VerbError
from manyworlds.lab.pictures.camera import Kind
from manyworlds.lab.pictures.image import ImageInfo

AnyImage = TypeVar("AnyImage", bound=ImageInfo)

CLOSED = "The cameras were closed: their lab has stopped."
"""Reason why there are no more images after the end of a lab."""
RENDER_S = 60.0
"""Longest wait for an image; the first one compiles shaders [s]."""


class Subscription(Generic[AnyImage]):
    """Images of one camera and kind for one consumer; a slow one loses the oldest.

    Args:
        camera: name of the camera.
        kind: kind of the images.
        capacity: number of images that wait for the consumer.
        idle_s: time without a call of the consumer after which nothing is drawn for this
            subscription until the next call [s].
        rate: largest number of images per simulated second, if the camera's is larger [Hz].
    """

    def __init__(self, camera: str, kind: Kind, capacity: int, idle_s: float, rate: float) -> None:
        self.camera = camera
        self.rate = rate
        self.kind: Kind = kind
        self.num_images = 0
        """Number of images that were delivered."""
        self.num_dropped = 0
        """Number of delivered images that the consumer was too slow to take."""
        self.num_late = 0
        """Number of images that were never drawn or sent, because that is slower than the rate."""
        self.error = ""
        """Reason why there are no images; empty if there are."""
        self._images: deque[AnyImage] = deque()
        self._capacity = capacity
        self._idle_s = idle_s
        self._asked = time.monotonic()
        self._changed = threading.Condition()
        self._closed = False
        self.begun = False
        """True when the first image was drawn, which may be delayed."""
        self.wake: Callable[[], None] = lambda: None
        """Called when the subscription was closed, or may be idle no longer."""
        self.on_news: Callable[[], None] = lambda: None
        """Called after each delivery and new `error`, in the thread that delivers."""

    @property
    def num_frames(self) -> int:
        """Former name of `num_images`."""
        return self.num_images

    @property
    def is_closed(self) -> bool:
        """True after `close`."""
        return self._closed

    @property
    def is_wanted(self) -> bool:
        """True while the consumer takes images."""
        return not self._closed and time.monotonic() - self._asked <= self._idle_s

    def get(self, timeout: float | None = None) -> AnyImage:
        """Wait for the next image, and return it.

        Args:
            timeout: longest wait [s]; None waits for ever.

        Raises:
            TimeoutError: there was none in time.
            VerbError: the camera cannot be drawn, or the subscription was closed.
        """
        self._ask()
        with self._changed:
            there = self._changed.wait_for(
                lambda: self._images or self.error or self._closed, timeout
            )
            if self._images:
                return self._images.popleft()
            if not there:
                raise TimeoutError(f"Camera '{self.camera}' had no new image for {timeout} s.")
            raise VerbError("not_ready", self.error or "The subscription was closed.")

    def newest(self) -> AnyImage | None:
        """Return the newest image that was not returned before, or None; never wait."""
        self._ask()
        with self._changed:
            if not self._images:
                return None
            image = self._images.pop()
            self._images.clear()
            return image

    def take(self) -> list[AnyImage]:
        """Return all images that wait, the oldest first; never wait."""
        self._ask()
        with self._changed:
            images = list(self._images)
            self._images.clear()
            return images

    def put(self, image: AnyImage) -> None:
        """Deliver an image."""
        with self._changed:
            self.error = ""
            self.num_images += 1
            self._images.append(image)
            if len(self._images) > self._capacity:
                self._images.popleft()
                self.num_dropped += 1
            self._changed.notify_all()
        self.on_news()

    def fail(self, error: str) -> None:
        """Report why there are no images."""
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

    def __enter__(self) -> Subscription[AnyImage]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self) -> None:
        self._asked = time.monotonic()
        if math.isfinite(self._idle_s):
            self.wake()  # drawing may have paused
