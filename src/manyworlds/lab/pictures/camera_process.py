"""The process that draws the images of a lab, seen from the lab's process."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from manyworlds.lab.pictures.camera import LabCameraCfg
from manyworlds.lab.pictures.subscription import CLOSED
from manyworlds.lab.readers.reader_process import ReaderProcess
from manyworlds.utils.gl import gl_environment

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_END_S = 10.0  # longest wait for the reason of the process's end


class CameraProcess(ReaderProcess):
    """Draws and encodes a lab's cameras in a process of its own, from shared memory.

    The process has the model and reads snapshots. Nothing is drawn there without a subscription or
    a request for an image. If it ends by itself, those who wait for images get the reason, and the
    log and the page have it, too.

    Args:
        lab: the lab.

    Raises:
        ValueError: the program cannot start.
        RuntimeError: its process ended.
    """

    def __init__(self, lab: LiveLab) -> None:
        self.problem = ""
        """Sentence about the end of the process, if it has ended by itself."""
        self.readers: set[int] = set()
        """Numbers of the readers that get images from this process."""
        self._over = threading.Event()
        self._lock = threading.Lock()
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

    def add_reader(self, reader: int, descriptor: int) -> None:
        """Send the images of a reader through a socket.

        Args:
            reader: number of the reader.
            descriptor: file descriptor of the socket, which stays open here.
        """
        self.readers.add(reader)
        self._tell("reader", descriptor, reader=reader)

    def tell(self, event: str, **fields: object) -> None:
        """Begin or end a stream, or draw one image."""
        self._tell(event, None, **fields)

    def wait_until_world_sent(self) -> None:
        """Wait until the process has got a rebuilt world: the old model would be drawn before."""
        assert self._link is not None
        self._link.wait_until_sent()

    def why_ended(self) -> str:
        """Return the reason why no more images come; wait for it for a moment."""
        self._over.wait(_END_S)
        return self.problem or CLOSED

    def close(self) -> None:
        """End the process; a second call does nothing."""
        super().close()
        if self._link is not None:
            self._link.hide()  # a cycle of references would keep the lab
        self._over.set()

    def ended(self, reason: str) -> None:
        """Keep the reason for all who wait for images."""
        self.problem = f"{reason.rstrip('.')}: the next recording or subscription starts it again."
        self._over.set()
