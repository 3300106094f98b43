"""Program that draws the images of a lab for all processes; see `ReaderProgram`."""

from __future__ import annotations

import contextlib
import functools
import socket
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np

from manyworlds.lab.errors import VerbError
from manyworlds.lab.loop.shared_snapshots import unpack_snapshot
from manyworlds.lab.pictures.camera import LabCameraCfg
from manyworlds.lab.pictures.drawing import NICENESS, CameraDrawer
from manyworlds.lab.pictures.image import CameraImage
from manyworlds.lab.pictures.subscription import Subscription
from manyworlds.lab.readers.reader_program import ReaderProgram, run_program
from manyworlds.lab.readers.wire import Message, Wire, unpack
from manyworlds.utils.platforms import lower_thread_priority

_Message = tuple[Message, memoryview | bytes | None]
"""A message and its payload, if it has one."""
_CAPACITY = 4  # images of a stream that wait until they are sent


class CameraProgram(ReaderProgram):
    """Draws the images of a lab, and sends each one to those who want it.

    The lab's process says what is wanted, through the wire, which also brings the cameras and the
    rebuilt worlds: all of them come in their order. Images go to a reader through a socket of its
    own, so that they cost the lab's process nothing.
    """

    _drawer: CameraDrawer

    def open(self, settings: Message) -> dict[str, object]:
        """Do nothing: there is no world yet."""
        self._cameras: dict[str, LabCameraCfg] = {}
        self._senders: dict[int, ImageSender] = {}
        return {}

    def show(self) -> None:
        """Draw the lab, which is the only one in the life of this process."""
        self.lab.sync_model()
        self._drawer = CameraDrawer(self.lab, lambda fresh: self._cameras)

    def take(self, message: Message) -> bool:
        """Note the cameras or a reader, begin or end a stream, or draw one image."""
        match message["event"]:
            case "cameras":
                cameras = message["cameras"].items()
                self._cameras = {name: LabCameraCfg.from_plain(plain) for name, plain in cameras}
            case "reader":
                self._drop_ended_readers()
                sender = ImageSender(Wire(socket.socket(fileno=message["descriptor"])))
                self._senders[message["reader"]] = sender
            case "subscribe":
                self._subscribe(message)
            case "unsubscribe":
                sender = self._senders.get(message["reader"])
                if sender is not None:
                    sender.remove_stream(message["stream"])
            case "render":
                self._render(message)
            case _:
                return False
        return True

    def _drop_ended_readers(self) -> None:
        for number, sender in list(self._senders.items()):
            if sender.has_ended:
                del self._senders[number]
                sender.close()

    def _subscribe(self, message: Message) -> None:
        sender = self._senders.get(message["reader"])
        if sender is None:
            return  # it has ended
        number = message["stream"]
        camera = message["camera"]
        kind = message["kind"]
        rate = message["rate"]
        try:
            stream = self._drawer.subscribe(camera, kind, capacity=_CAPACITY, rate=rate)
        except VerbError as error:
            refusal: Message = {"tell": "no_images", "stream": number, "text": str(error)}
            sender.send_soon(lambda: (refusal, None))
            return
        sender.add_stream(number, stream, message["jpeg"])

    def _render(self, message: Message) -> None:
        sender = self._senders.get(message["reader"])
        if sender is None:
            return  # it has ended
        snapshot = None
        if "snapshot" in message:
            snapshot = unpack_snapshot(unpack(message["snapshot"]))
        try:
            drawn = self._drawer.request(message["camera"], message["kind"], snapshot)
        except VerbError as error:
            drawn = Future[CameraImage]()
            drawn.set_exception(error)
        answer = functools.partial(_answer, message["number"], drawn, message["jpeg"])
        drawn.add_done_callback(lambda _: sender.send_soon(answer))


@dataclass(eq=False)
class _SentStream:
    """Images of one camera that are sent to a reader."""

    images: Subscription[CameraImage]
    jpeg: bool
    error: str = ""
    """Error that the reader has."""


class ImageSender:
    """Sends images to one process, in a thread of its own.

    The thread also encodes JPEG files. A process that is too slow loses its oldest images, and
    delays neither the drawing nor other processes.

    Args:
        wire: wire to the process.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._streams: dict[int, _SentStream] = {}
        self._messages: deque[Callable[[], _Message]] = deque()
        self._news = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="manyworlds-images", daemon=True)
        self._thread.start()

    @property
    def has_ended(self) -> bool:
        """True if the other process, or this end, was closed."""
        return self._closed or self._wire.has_ended

    def add_stream(self, number: int, images: Subscription[CameraImage], jpeg: bool) -> None:
        """Send images from now on, perhaps as JPEG files."""
        self._streams[number] = _SentStream(images, jpeg)
        images.on_news = self._news.set
        self._news.set()  # for what came in between

    def remove_stream(self, number: int) -> None:
        """Send no further images of a stream."""
        stream = self._streams.pop(number, None)
        if stream is not None:
            stream.images.close()

    def send_soon(self, message: Callable[[], _Message]) -> None:
        """Send the message that a function returns, which the thread calls."""
        self._messages.append(message)
        self._news.set()

    def close(self) -> None:
        """End all streams, and the thread."""
        self._closed = True
        for number in list(self._streams):
            self.remove_stream(number)
        self._wire.close()
        self._news.set()

    def _run(self) -> None:
        lower_thread_priority(NICENESS)
        with contextlib.suppress(OSError):  # the other process has ended
            while not self._closed:
                self._news.wait()
                self._news.clear()
                while self._messages:
                    message, pixels = self._messages.popleft()()
                    self._wire.send(message, payload=pixels)
                for number, stream in list(self._streams.items()):
                    self._send_stream(number, stream)
        self.close()

    def _send_stream(self, number: int, stream: _SentStream) -> None:
        for image in stream.images.take():
            try:
                pixels = _pixels(image, stream.jpeg)
            except Exception as error:  # no package for JPEG files
                stream.images.fail(str(error))
                break
            stream.error = ""
            late = stream.images.num_late + stream.images.num_dropped
            header = image.header()
            message = {"tell": "image", "stream": number, "late": late, "header": header}
            self._wire.send(message, payload=pixels)
        error = stream.images.error
        if error and error != stream.error:
            self._wire.send({"tell": "no_images", "stream": number, "text": error})
        stream.error = error


def _answer(number: int, drawn: Future[CameraImage], jpeg: bool) -> _Message:
    """Return the answer to a request for one image."""
    try:
        image = drawn.result()
        answer = {"tell": "rendered", "number": number, "header": image.header()}
        return answer, _pixels(image, jpeg)
    except Exception as error:  # of OpenGL, or of the request
        code = error.code if isinstance(error, VerbError) else "internal"
        return {"tell": "not_rendered", "number": number, "error": [code, str(error)]}, None


def _pixels(image: CameraImage, jpeg: bool) -> memoryview | bytes:
    """Return the pixels of an image, or a JPEG file."""
    if jpeg:
        return image.jpeg()
    return np.ascontiguousarray(image.image).data.cast("B")


def main() -> None:
    """Draw until SIGTERM; the only argument is the file descriptor of the wire."""
    run_program(CameraProgram)
