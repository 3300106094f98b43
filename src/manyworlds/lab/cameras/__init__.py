"""Cameras of a live world, drawn from its snapshots outside the physics thread."""

from manyworlds.lab.cameras.camera import (
    KINDS,
    LabCameraCfg,
    Kind,
    model_cameras,
    quat_to_look,
)
from manyworlds.lab.cameras.frame import Frame, decode_image
from manyworlds.lab.cameras.hub import CameraHub, Subscription

__all__ = [
    "KINDS",
    "LabCameraCfg",
    "CameraHub",
    "Frame",
    "Kind",
    "Subscription",
    "decode_image",
    "model_cameras",
    "quat_to_look",
]
