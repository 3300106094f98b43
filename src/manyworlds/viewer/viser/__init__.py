"""Viewer of many worlds in a browser.

Names are loaded on first use, so that other modules need neither viser nor trimesh.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mjviser.conversions import (
        create_site_mesh,
        get_geom_texture_id,
        group_geoms_by_visual_compat,
        merge_geoms,
        merge_sites,
        mujoco_mesh_to_trimesh,
    )

    from manyworlds.viewer.viser.viewer import CheckpointManager, ViserPlayViewer

__all__ = [
    "CheckpointManager",
    "ViserPlayViewer",
    "create_site_mesh",
    "get_geom_texture_id",
    "group_geoms_by_visual_compat",
    "merge_geoms",
    "merge_sites",
    "mujoco_mesh_to_trimesh",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    ours = name in ("CheckpointManager", "ViserPlayViewer")
    module = "manyworlds.viewer.viser.viewer" if ours else "mjviser.conversions"
    return getattr(importlib.import_module(module), name)
