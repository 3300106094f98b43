"""Images of cameras in MCAP files, as Foxglove and other programs show them.

Each camera has two topics of Protobuf messages: `/camera/NAME/image`, of the schema
`foxglove.CompressedImage`, and `/camera/NAME/calibration`, of `foxglove.CameraCalibration`
(https://docs.foxglove.dev/docs/visualization/message-schemas/introduction). Their times are those
of the recording's frames. `/tf` of `foxglove.FrameTransforms` has the pose of the camera in the
frame `world` with each image; the camera's frame `NAME_optical_frame` has z forward and y down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

import mujoco
import numpy as np
from foxglove_schemas_protobuf.CameraCalibration_pb2 import CameraCalibration
from foxglove_schemas_protobuf.CompressedImage_pb2 import CompressedImage
from foxglove_schemas_protobuf.FrameTransforms_pb2 import FrameTransforms

from manyworlds.lab.pictures.frame import JpegFrame
from manyworlds.lab.pictures.subscription import Subscription
from manyworlds.lab.recording.foxglove import descriptors, stamp, transform
from manyworlds.validation.names import free_name

if TYPE_CHECKING:
    from mcap.writer import Writer

MESSAGES = {"image": CompressedImage, "calibration": CameraCalibration}
"""Messages of each camera, by the end of their topic."""
_OPTICAL = np.array([0.0, 1.0, 0.0, 0.0])  # half a turn about x: from MuJoCo's cameras


class ImageTracks:
    """Writes the frames of cameras into a file.

    Args:
        writer: writer of the file.
        streams: subscriptions to colors, one per camera.
        clock: returns the time of a frame in the recording [s].
        taken: names of frames of the model, which cameras cannot have.
    """

    def __init__(
        self,
        writer: Writer,
        streams: Sequence[Subscription[JpegFrame]],
        clock: Callable[[JpegFrame], float],
        taken: Collection[str] = (),
    ) -> None:
        self._writer = writer
        self._streams = streams
        self._clock = clock
        self.num_written = {stream.camera: 0 for stream in streams}
        """Number of frames in the file, by camera."""
        self._frames: dict[str, str] = {}
        for camera in self.num_written:
            others = {*taken, *self._frames.values()}
            self._frames[camera] = free_name(f"{camera}_optical_frame", others)
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
        """Write the frames that have come."""
        for stream in self._streams:
            for frame in stream.take():
                self._add(frame)

    def _add(self, frame: JpegFrame) -> None:
        name = frame.camera
        time = self._clock(frame)
        if time <= self._last[name]:
            return  # of a world that was reset and has not moved since
        self._last[name] = time
        nanoseconds = max(0, round(time * 1e9))
        count = self.num_written[name]
        frame_id = self._frames[name]
        for channel, message in (
            (self._poses, camera_pose(frame, frame_id, nanoseconds)),
            (self._channels[name, "calibration"], calibration(frame, frame_id, nanoseconds)),
            (self._channels[name, "image"], compressed_image(frame, frame_id, nanoseconds)),
        ):
            content = message.SerializeToString()
            self._writer.add_message(channel, nanoseconds, content, nanoseconds, count)
        self.num_written[name] += 1


def compressed_image(frame: JpegFrame, frame_id: str, nanoseconds: int) -> CompressedImage:
    """Return the message of a frame, with a JPEG file."""
    return CompressedImage(
        timestamp=stamp(nanoseconds), frame_id=frame_id, data=frame.data, format="jpeg"
    )


def calibration(frame: JpegFrame, frame_id: str, nanoseconds: int) -> CameraCalibration:
    """Return the calibration of a frame, which has no distortion."""
    fx, fy, cx, cy = frame.intrinsics
    return CameraCalibration(
        timestamp=stamp(nanoseconds),
        frame_id=frame_id,
        width=frame.width,
        height=frame.height,
        distortion_model="plumb_bob",
        D=[0.0] * 5,
        K=[fx, 0.0, cx, 0.0, fy, cy, 0.0, 0.0, 1.0],
        R=[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        P=[fx, 0.0, cx, 0.0, 0.0, fy, cy, 0.0, 0.0, 0.0, 1.0, 0.0],
    )


def camera_pose(frame: JpegFrame, frame_id: str, nanoseconds: int) -> FrameTransforms:
    """Return the pose of an image's frame."""
    turned = np.empty(4)
    mujoco.mju_mulQuat(turned, np.array(frame.quat), _OPTICAL)
    pose = transform(stamp(nanoseconds), frame_id, frame.pos, turned)
    return FrameTransforms(transforms=[pose])
