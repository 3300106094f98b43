"""Viewers of worlds: images, videos, MuJoCo's window, and the browser.

Names are loaded on first use, so that asking `gl_available` needs neither OpenGL nor MuJoCo.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyworlds.utils.lazy_names import lazy_names

if TYPE_CHECKING:
    from manyworlds.utils.gl import gl_available
    from manyworlds.utils.viewer_config import ViewerConfig
    from manyworlds.viewer.base import BaseViewer, VerbosityLevel, ViewerStatus
    from manyworlds.viewer.native.viewer import NativeMujocoViewer
    from manyworlds.viewer.offscreen_renderer import OffscreenRenderer, attach_renderer
    from manyworlds.viewer.requests import ViewerAction
    from manyworlds.viewer.training_view import TrainingView
    from manyworlds.viewer.video import write_video
    from manyworlds.viewer.video_recorder import VideoRecorder
    from manyworlds.viewer.viser.viewer import ViserPlayViewer

__all__ = [
    "BaseViewer",
    "NativeMujocoViewer",
    "OffscreenRenderer",
    "TrainingView",
    "VerbosityLevel",
    "VideoRecorder",
    "ViewerAction",
    "ViewerConfig",
    "ViewerStatus",
    "ViserPlayViewer",
    "attach_renderer",
    "gl_available",
    "write_video",
]

_MODULES = {
    "BaseViewer": "manyworlds.viewer.base",
    "NativeMujocoViewer": "manyworlds.viewer.native.viewer",
    "OffscreenRenderer": "manyworlds.viewer.offscreen_renderer",
    "TrainingView": "manyworlds.viewer.training_view",
    "VerbosityLevel": "manyworlds.viewer.base",
    "VideoRecorder": "manyworlds.viewer.video_recorder",
    "ViewerAction": "manyworlds.viewer.requests",
    "ViewerConfig": "manyworlds.utils.viewer_config",
    "ViewerStatus": "manyworlds.viewer.base",
    "ViserPlayViewer": "manyworlds.viewer.viser.viewer",
    "attach_renderer": "manyworlds.viewer.offscreen_renderer",
    "gl_available": "manyworlds.utils.gl",
    "write_video": "manyworlds.viewer.video",
}

__getattr__ = lazy_names(__name__, _MODULES)
