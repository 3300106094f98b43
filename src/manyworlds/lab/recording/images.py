"""Images of cameras in MCAP files, as Foxglove and other programs show them.

Each camera has two topics of Protobuf messages: `/camera/NAME/image`, of the schema
`foxglove.CompressedImage`, and `/camera/NAME/calibration`, of `foxglove.CameraCalibration`
(https://docs.foxglove.dev/docs/visualization/message-schemas/introduction). Their times are those
of the recording's frames. `/tf` of `foxglove.FrameTransforms` has the pose of the camera in the
frame `world` with each image; the camera's frame `NAME_optical_frame` has z forward and y down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from foxglove_schemas_protobuf.CameraCalibration_pb2 import CameraCalibration
from foxglove_schemas_protobuf.CompressedImage_pb2 import CompressedImage
from foxglove_schemas_protobuf.FrameTransforms_pb2 import FrameTransforms

from manyworlds.lab.pictures.image import JpegImage
from manyworlds.lab.pictures.subscription import Subscription
from manyworlds.lab.recording.foxglove import descriptors, stamp, transform
from manyworlds.lab.world.frames import ModelFrames, camera_matrices, optical_quat

if TYPE_CHECKING:
    from mcap.writer import Writer

MESSAGES = {"image": CompressedImage, "calibration": CameraCalibration}
"""Messages of each camera, by the end of their topic."""


class ImageTracks:
    """Writes the images of cameras into a file.

    Args:
        writer: writer of the file.
        streams: subscriptions to colors, one per camera.
        clock: returns the time of an image in the recording [s].
        frames: frames of the model that the recording begins with.
    """

    def __init__(
        self,
        writer: Writer,
        streams: Sequence[Subscription[JpegImage]],
        clock: Callable[[JpegImage], float],
        frames: ModelFrames,
    ) -> None:
        self._writer = writer
        self._streams = streams
        self._clock = clock
        self.num_written = {stream.camera: 0 for stream in streams}
        """Number of images in the file, by camera."""
        self.frames = frames
        """Frames of the present model."""
        self._last = dict.fromkeys(self.num_written, -math.inf)
        self._channels: dict[tuple[str, str], int] = {}
        if not streams:
            return
        name = FrameTransforms.DESCRIPTOR.full_name
        number = writer.register_schema(name, "protobuf", descriptors(FrameTransforms))
        self._poses = writer.register_channel("/tf", "protobuf", number)
        for topic, kind in MESSAGES.items():
            name = kind.DESCRIPTOR.full_name
            number = writer.register_schema(name, "protobuf", descriptors(kind))
            for camera in self.num_written:
                channel = writer.register_channel(f"/camera/{camera}/{topic}", "protobuf", number)
                self._channels[camera, topic] = channel

    def write(self) -> None:
        """Write the images that have come."""
        for stream in self._streams:
            for image in stream.take():
                self._add(image)

    def _add(self, image: JpegImage) -> None:
        name = image.camera
        time = self._clock(image)
        if time <= self._last[name]:
            return  # of a world that was reset and has not moved since
        self._last[name] = time
        nanoseconds = max(0, round(time * 1e9))
        count = self.num_written[name]
        frame_id = self.frames.camera(name)
        for channel, message in (
            (self._poses, camera_pose(image, frame_id, nanoseconds)),
            (self._channels[name, "calibration"], calibration(image, frame_id, nanoseconds)),
            (self._channels[name, "image"], compressed_image(image, frame_id, nanoseconds)),
        ):
            content = message.SerializeToString()
            self._writer.add_message(channel, nanoseconds, content, nanoseconds, count)
        self.num_written[name] += 1


def compressed_image(image: JpegImage, frame_id: str, nanoseconds: int) -> CompressedImage:
    """Return the message of an image, with a JPEG file."""
    return CompressedImage(
        timestamp=stamp(nanoseconds), frame_id=frame_id, data=image.data, format="jpeg"
    )


def calibration(image: JpegImage, frame_id: str, nanoseconds: int) -> CameraCalibration:
    """Return the calibration of an image, which has no distortion."""
    matrices = camera_matrices(*image.intrinsics)
    return CameraCalibration(
        timestamp=stamp(nanoseconds),
        frame_id=frame_id,
        width=image.width,
        height=image.height,
        distortion_model="plumb_bob",
        **{name.upper(): rows for name, rows in matrices.items()},
    )


def camera_pose(image: JpegImage, frame_id: str, nanoseconds: int) -> FrameTransforms:
    """Return the pose of the frame of an image's camera."""
    pose = transform(stamp(nanoseconds), frame_id, image.pos, optical_quat(image.quat))
    return FrameTransforms(transforms=[pose])
