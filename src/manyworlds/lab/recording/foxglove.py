"""Parts that messages of Foxglove share, and the descriptors that decoders need.

The messages are those of the package `foxglove-schemas-protobuf`, of the extra 'lab'
(https://docs.foxglove.dev/docs/visualization/message-schemas/introduction).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from foxglove_schemas_protobuf.FrameTransform_pb2 import FrameTransform
from foxglove_schemas_protobuf.Quaternion_pb2 import Quaternion
from foxglove_schemas_protobuf.Vector3_pb2 import Vector3
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

WORLD = "world"
"""Frame of the poses."""


def descriptors(message: type[Message]) -> bytes:
    """Return the `FileDescriptorSet` of a message and of all that it contains."""
    files = FileDescriptorSet()
    known: set[str] = set()

    def add(file: FileDescriptor) -> None:
        if file.name in known:
            return
        known.add(file.name)
        for inner in file.dependencies:
            add(inner)
        file.CopyToProto(files.file.add())

    add(cast("FileDescriptor", message.DESCRIPTOR.file))
    return files.SerializeToString()


def stamp(nanoseconds: int) -> Timestamp:
    """Return a time as the messages have it."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return Timestamp(seconds=seconds, nanos=rest)


def vector(values: Iterable[float]) -> Vector3:
    """Return three numbers."""
    x, y, z = values
    return Vector3(x=x, y=y, z=z)


def quaternion(quat: Iterable[float]) -> Quaternion:
    """Return MuJoCo's quaternion (wxyz)."""
    w, x, y, z = quat
    return Quaternion(w=w, x=x, y=y, z=z)


def transform(
    moment: Timestamp, child: str, pos: Iterable[float], quat: Iterable[float]
) -> FrameTransform:
    """Return the transform from a frame to the world.

    Args:
        moment: time.
        child: name of the frame.
        pos: its position in the world [m], shape [3].
        quat: its orientation in the world (wxyz), shape [4].
    """
    return FrameTransform(
        timestamp=moment,
        parent_frame_id=WORLD,
        child_frame_id=child,
        translation=vector(pos),
        rotation=quaternion(quat),
    )
