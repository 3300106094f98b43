"""Cameras of a live world, drawn from its snapshots outside the physics thread.

What draws is loaded on first use: only the camera process needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyworlds.lab.pictures.camera import (
    KINDS,
    Kind,
    LabCameraCfg,
    model_cameras,
    quat_to_look,
)
from manyworlds.lab.pictures.image import CameraImage, JpegImage, decode_image
from manyworlds.lab.pictures.subscription import Subscription
from manyworlds.utils.lazy_names import lazy_names

if TYPE_CHECKING:
    from manyworlds.lab.pictures.cameras import FaceCameras
    from manyworlds.lab.pictures.drawing import CameraDrawer

    CameraHub = CameraDrawer

Frame = CameraImage
"""Former name of `CameraImage`."""
JpegFrame = JpegImage
"""Former name of `JpegImage`."""

__all__ = [
    "KINDS",
    "CameraDrawer",
    "CameraImage",
    "FaceCameras",
    "JpegImage",
    "Kind",
    "LabCameraCfg",
    "Subscription",
    "decode_image",
    "model_cameras",
    "quat_to_look",
]

_MODULES = {"CameraDrawer": ".drawing", "CameraHub": ".drawing", "FaceCameras": ".cameras"}

__getattr__ = lazy_names(__name__, _MODULES)
