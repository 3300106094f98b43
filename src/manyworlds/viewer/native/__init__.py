"""Viewer of one world in MuJoCo's own window; its names are loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyworlds.utils.lazy_names import lazy_names

if TYPE_CHECKING:
    from manyworlds.viewer.native.viewer import NativeMujocoViewer
    from manyworlds.viewer.native.visualizer import MujocoNativeDebugVisualizer

__all__ = ["MujocoNativeDebugVisualizer", "NativeMujocoViewer"]

_MODULES = {"MujocoNativeDebugVisualizer": ".visualizer", "NativeMujocoViewer": ".viewer"}

__getattr__ = lazy_names(__name__, _MODULES)
