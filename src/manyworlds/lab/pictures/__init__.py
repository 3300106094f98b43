"""Cameras of a live world, drawn from its snapshots outside the physics thread."""

from manyworlds.lab.pictures.camera import (
    KINDS,
    Kind,
    LabCameraCfg,
    model_cameras,
    quat_to_look,
)
from manyworlds.lab.pictures.frame import Frame, JpegFrame, decode_image
from manyworlds.lab.pictures.hub import CameraHub
from manyworlds.lab.pictures.subscription import Subscription

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
