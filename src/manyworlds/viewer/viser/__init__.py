"""Viewer of many worlds in a browser.

Names are loaded on first use, so that other modules need neither viser nor trimesh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyworlds.utils.lazy_names import lazy_names

if TYPE_CHECKING:
    from manyworlds.viewer.viser.viewer import CheckpointManager, ViserPlayViewer

__all__ = ["CheckpointManager", "ViserPlayViewer"]

__getattr__ = lazy_names(__name__, dict.fromkeys(__all__, "manyworlds.viewer.viser.viewer"))
