"""Viewer of many worlds in a browser.

Names are loaded on first use, so that other modules need neither viser nor trimesh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyworlds.utils.lazy_names import lazy_names

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

_OURS = dict.fromkeys(("CheckpointManager", "ViserPlayViewer"), "manyworlds.viewer.viser.viewer")

__getattr__ = lazy_names(__name__, dict.fromkeys(__all__, "mjviser.conversions") | _OURS)
