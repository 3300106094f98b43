"""Images of cameras in MCAP files, as Foxglove and other programs show them.

Each camera has two topics of Protobuf messages: `/camera/NAME/image`, of the schema
`foxglove.CompressedImage`, and `/camera/NAME/calibration`, of `foxglove.CameraCalibration`
(https://docs.foxglove.dev/docs/visualization/message-schemas/introduction). Their times are those
of the recording's frames.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from manyworlds.lab.cameras.frame import JpegFrame
from manyworlds.lab.cameras.subscription import Subscription
from manyworlds.lab.protobuf import Value, descriptors, encode

if TYPE_CHECKING:
    from mcap.writer import Writer

MESSAGES = ("foxglove.CompressedImage", "foxglove.CameraCalibration")
"""Messages of each camera."""


class ImageTracks:
    """Writes the frames of cameras into a file.

    Args:
        writer: writer of the file.
        streams: subscriptions to colors, one per camera.
        clock: returns the time of a frame in the recording [s].
    """

    def __init__(
        self,
        writer: Writer,
        streams: Sequence[Subscription[JpegFrame]],
        clock: Callable[[JpegFrame], float],
    ) -> None:
        self._writer, self._streams, self._clock = writer, streams, clock
        self.num_written = {stream.camera: 0 for stream in streams}
        """Number of frames in the file, by camera."""
        self._last = dict.fromkeys(self.num_written, -math.inf)
        self._channels: dict[tuple[str, str], int] = {}
        for name in MESSAGES if streams else ():
            number = writer.register_schema(name, "protobuf", descriptors(name))
            topic = "image" if name.endswith("Image") else "calibration"
            for camera in self.num_written:
                channel = writer.register_channel(f"/camera/{camera}/{topic}", "protobuf", number)
                self._channels[camera, topic] = channel

    def write(self) -> None:
        """Write the frames that have come."""
        for stream in self._streams:
            for frame in stream.take():
                self._add(frame)

    def _add(self, frame: JpegFrame) -> None:
        name, time = frame.camera, self._clock(frame)
        if time <= self._last[name]:
            return  # of a world that was reset and has not moved since
        self._last[name] = time
        nanoseconds = max(0, round(time * 1e9))
        for topic, message in (
            ("calibration", calibration(frame, nanoseconds)),
            ("image", compressed_image(frame, nanoseconds)),
        ):
            self._writer.add_message(
                self._channels[name, topic],
                nanoseconds,
                message,
                nanoseconds,
                self.num_written[name],
            )
        self.num_written[name] += 1


def compressed_image(frame: JpegFrame, nanoseconds: int) -> bytes:
    """Return the message `foxglove.CompressedImage` of a frame, with a JPEG file."""
    values: dict[str, Value] = {
        "timestamp": stamp(nanoseconds),
        "frame_id": frame.camera,
        "data": frame.data,
        "format": "jpeg",
    }
    return encode("foxglove.CompressedImage", values)


def calibration(frame: JpegFrame, nanoseconds: int) -> bytes:
    """Return the message `foxglove.CameraCalibration` of a frame, which has no distortion."""
    fx, fy, cx, cy = frame.intrinsics
    values: dict[str, Value] = {
        "timestamp": stamp(nanoseconds),
        "frame_id": frame.camera,
        "width": frame.width,
        "height": frame.height,
        "distortion_model": "plumb_bob",
        "D": [0.0] * 5,
        "K": [fx, 0.0, cx, 0.0, fy, cy, 0.0, 0.0, 1.0],
        "R": [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        "P": [fx, 0.0, cx, 0.0, 0.0, fy, cy, 0.0, 0.0, 0.0, 1.0, 0.0],
    }
    return encode("foxglove.CameraCalibration", values)


def stamp(nanoseconds: int) -> dict[str, Value]:
    """Return a time as the messages have it."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return {"seconds": seconds, "nanos": rest}
