"""Cameras of a live world, drawn from its snapshots outside the physics thread."""

from manyworlds.lab.cameras.camera import (
    KINDS,
    Kind,
    LabCameraCfg,
    model_cameras,
    quat_to_look,
)
from manyworlds.lab.cameras.frame import Frame, JpegFrame, decode_image
from manyworlds.lab.cameras.hub import CameraHub
from manyworlds.lab.cameras.subscription import Subscription

__all__ = [
    "KINDS",
    "CameraHub",
    "Frame",
    "JpegFrame",
    "Kind",
    "LabCameraCfg",
    "Subscription",
    "decode_image",
    "model_cameras",
    "quat_to_look",
]
