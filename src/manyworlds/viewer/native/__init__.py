"""Viewer of one world in MuJoCo's own window."""

from manyworlds.viewer.native.viewer import NativeMujocoViewer
from manyworlds.viewer.native.visualizer import MujocoNativeDebugVisualizer

__all__ = ["MujocoNativeDebugVisualizer", "NativeMujocoViewer"]
