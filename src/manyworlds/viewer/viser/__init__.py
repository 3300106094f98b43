"""The view of many worlds in a browser."""

from manyworlds.viewer.viser.viewer import ViserPlayViewer

__all__ = ["ViserPlayViewer"]
