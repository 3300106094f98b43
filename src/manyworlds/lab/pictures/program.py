"""Program that draws and encodes the images of a lab's cameras; see `ReaderProgram`."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from manyworlds.lab.errors import VerbError
from manyworlds.lab.loop.shared_snapshots import unpack_snapshot
from manyworlds.lab.pictures.camera import LabCameraCfg
from manyworlds.lab.pictures.frame import Frame, JpegFrame
from manyworlds.lab.pictures.hub import CameraHub
from manyworlds.lab.pictures.subscription import Subscription
from manyworlds.lab.readers.reader_program import ReaderProgram, run_program
from manyworlds.lab.readers.wire import Message

_CAPACITY = 8  # frames are sent when they are drawn: none waits


class CameraProgram(ReaderProgram):
    """Draws what the lab's process subscribes to, and sends it back.

    The thread that draws also encodes and sends: while the lab is busy, fewer frames are drawn.
    """

    _hub: CameraHub

    def open(self, settings: Message) -> dict[str, object]:
        """Do nothing: there is no world yet."""
        self._cameras: dict[str, LabCameraCfg] = {}
        self._streams: dict[int, Subscription[Frame]] = {}
        return {}

    def show(self) -> None:
        """Draw the lab, which is the only one in the life of this process."""
        self.lab.sync_model()
        self._hub = CameraHub(self.lab, lambda fresh: self._cameras)

    def take(self, message: Message) -> bool:
        """Note the cameras, begin or end a stream, or draw one image."""
        match message["event"]:
            case "cameras":
                cameras = message["cameras"].items()
                self._cameras = {name: LabCameraCfg.from_plain(plain) for name, plain in cameras}
            case "subscribe":
                self._subscribe(message)
            case "unsubscribe":
                stream = self._streams.pop(message["stream"], None)
                if stream is not None:
                    stream.close()
            case "render":
                self._render(message)
            case _:
                return False
        return True

    def _subscribe(self, message: Message) -> None:
        number, jpeg = message["stream"], message["jpeg"]
        try:
            stream = self._hub.subscribe(message["camera"], message["kind"], capacity=_CAPACITY)
        except VerbError as error:
            self.lab.tell("no_frames", stream=number, text=str(error))
            return
        self._streams[number] = stream
        stream.on_news = lambda: self._deliver(number, stream, jpeg)
        self._deliver(number, stream, jpeg)  # what came in between

    def _deliver(self, number: int, stream: Subscription[Frame], jpeg: bool) -> None:
        for frame in stream.take():
            late = stream.num_late
            self.lab.tell("frame", stream=number, late=late, **self._packed(frame, jpeg))
        if stream.error:
            self.lab.tell("no_frames", stream=number, text=stream.error)

    def _render(self, message: Message) -> None:
        number, jpeg = message["number"], message["jpeg"]
        snapshot = unpack_snapshot(message["snapshot"]) if "snapshot" in message else None

        def answer(done: Future[Frame]) -> None:
            try:
                self.lab.tell("rendered", number=number, **self._packed(done.result(), jpeg))
            except Exception as error:  # of OpenGL, or of the request
                code = error.code if isinstance(error, VerbError) else "internal"
                self.lab.tell("not_rendered", number=number, error=[code, str(error)])

        try:
            drawn = self._hub.request(message["camera"], message["kind"], snapshot)
        except VerbError as error:
            drawn = Future[Frame]()
            drawn.set_exception(error)
        drawn.add_done_callback(answer)

    def _packed(self, frame: Frame, jpeg: bool) -> dict[str, Any]:
        """Return header and pixels of a frame, and the number of images drawn so far."""
        image = frame.to_jpeg().data if jpeg else frame.image
        return {"header": frame.header(), "image": image, "drawn": self._hub.num_drawn}


def unpack_frame(message: Message, jpeg: bool) -> Frame | JpegFrame:
    """Return the frame of a message of the program."""
    header = message["header"]
    if not jpeg:
        return Frame.from_header(header, image=message["image"])
    sizes = {name: header[name] for name in ("width", "height", "channels", "dtype")}
    return JpegFrame.from_header(header, **sizes, data=message["image"])


def main() -> None:
    """Draw until SIGTERM; the only argument is the file descriptor of the wire."""
    run_program(CameraProgram)
