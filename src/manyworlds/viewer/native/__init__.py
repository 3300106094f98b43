"""Viewer of one world in MuJoCo's own window; its names are loaded on first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyworlds.viewer.native.viewer import NativeMujocoViewer
    from manyworlds.viewer.native.visualizer import MujocoNativeDebugVisualizer

__all__ = ["MujocoNativeDebugVisualizer", "NativeMujocoViewer"]

_MODULES = {"MujocoNativeDebugVisualizer": "visualizer", "NativeMujocoViewer": "viewer"}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
