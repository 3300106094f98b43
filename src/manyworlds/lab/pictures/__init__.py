"""Cameras of a live world, drawn from its snapshots outside the physics thread."""

from manyworlds.lab.pictures.camera import (
    KINDS,
    Kind,
    LabCameraCfg,
    model_cameras,
    quat_to_look,
)
from manyworlds.lab.pictures.drawing import CameraDrawer
from manyworlds.lab.pictures.image import CameraImage, JpegImage, decode_image
from manyworlds.lab.pictures.subscription import Subscription

CameraHub = CameraDrawer
"""Former name of `CameraDrawer`."""
Frame = CameraImage
"""Former name of `CameraImage`."""
JpegFrame = JpegImage
"""Former name of `JpegImage`."""

__all__ = [
    "KINDS",
    "CameraDrawer",
    "CameraImage",
    "JpegImage",
    "Kind",
    "LabCameraCfg",
    "Subscription",
    "decode_image",
    "model_cameras",
    "quat_to_look",
]
