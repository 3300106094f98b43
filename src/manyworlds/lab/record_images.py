"""Images of cameras in MCAP files, as Foxglove and other programs show them.

Each camera has two topics of JSON messages: `/camera/NAME/image`, of the schema
`foxglove.CompressedImage`, and `/camera/NAME/calibration`, of `foxglove.CameraCalibration`
(https://docs.foxglove.dev/docs/visualization/message-schemas/introduction). Their times are those
of the recording's frames.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from manyworlds.lab.cameras.frame import JpegFrame
from manyworlds.lab.cameras.subscription import Subscription

if TYPE_CHECKING:
    from mcap.writer import Writer

TIME = {
    "type": "object",
    "title": "time",
    "properties": {
        "sec": {"type": "integer", "minimum": 0},
        "nsec": {"type": "integer", "minimum": 0, "maximum": 999999999},
    },
}
"""JSON schema of times."""
_TEXT = {"type": "string"}
_NUMBER = {"type": "number"}


def _numbers(count: int | None = None) -> dict[str, object]:
    exactly = {} if count is None else {"minItems": count, "maxItems": count}
    return {"type": "array", "items": _NUMBER, **exactly}


SCHEMAS: dict[str, dict[str, object]] = {
    "foxglove.CompressedImage": {
        "timestamp": TIME,
        "frame_id": _TEXT,
        "data": {"type": "string", "contentEncoding": "base64"},
        "format": _TEXT,
    },
    "foxglove.CameraCalibration": {
        "timestamp": TIME,
        "frame_id": _TEXT,
        "width": {"type": "integer", "minimum": 0},
        "height": {"type": "integer", "minimum": 0},
        "distortion_model": _TEXT,
        "D": _numbers(),
        "K": _numbers(9),
        "R": _numbers(9),
        "P": _numbers(12),
    },
}
"""JSON schemas of the fields of each message."""


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
        for name, properties in SCHEMAS.items() if streams else ():
            schema = {"title": name, "type": "object", "properties": properties}
            number = writer.register_schema(name, "jsonschema", json.dumps(schema).encode())
            topic = "image" if name.endswith("Image") else "calibration"
            for camera in self.num_written:
                channel = writer.register_channel(f"/camera/{camera}/{topic}", "json", number)
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
                json.dumps(message).encode(),
                nanoseconds,
                self.num_written[name],
            )
        self.num_written[name] += 1


def compressed_image(frame: JpegFrame, nanoseconds: int) -> dict[str, object]:
    """Return the message `foxglove.CompressedImage` of a frame, with a JPEG file."""
    return {
        "timestamp": stamp(nanoseconds),
        "frame_id": frame.camera,
        "data": base64.b64encode(frame.data).decode(),
        "format": "jpeg",
    }


def calibration(frame: JpegFrame, nanoseconds: int) -> dict[str, object]:
    """Return the message `foxglove.CameraCalibration` of a frame, which has no distortion."""
    fx, fy, cx, cy = frame.intrinsics
    return {
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


def stamp(nanoseconds: int) -> dict[str, int]:
    """Return a time as the messages have it."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return {"sec": seconds, "nsec": rest}
