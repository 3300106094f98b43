"""Preparation of models and data for rendering."""

from __future__ import annotations

import math

import mujoco

_ZNEAR = 0.01  # MuJoCo's default, relative to the model's extent
_SHADOWED = 3.0
"""Extent that shadows cover at least [m]: outside of the shadow map, planes have black specks."""
_SHADOW_CLIP = 3.0
_DIAMETER = 2.0
_NEAREST = 0.05
"""Upper bound of the near clipping distance of cameras [m], for models of any size."""


def pose_for_drawing(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Compute the fields that rendering needs from the state, without collisions or dynamics."""
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_camlight(model, data)
    mujoco.mj_flex(model, data)
    mujoco.mj_tendon(model, data)


def draw_for_robots(model: mujoco.MjModel) -> None:
    """Set sizes for drawing by what moves, not by the terrain around it.

    By default, MuJoCo clips at a hundredth of the model's extent, which on a terrain of 200 m hides
    everything within 2 m, and draws contacts, frames and debug shapes in the mean size of all
    bodies, which is meters there. A model with another `znear` or `shadowclip` keeps it.

    Args:
        model: the model to render; its `vis.map.znear`, `vis.map.shadowclip` and `stat.meansize`
            are written.
    """
    near = model.vis.map
    if math.isclose(near.znear, _ZNEAR, rel_tol=1e-6):
        near.znear = min(near.znear, _NEAREST / model.stat.extent)
    if near.shadowclip == 1.0:
        near.shadowclip = min(_SHADOW_CLIP, max(1.0, _SHADOWED / model.stat.extent))
    sizes = model.geom_rbound[model.body_weldid[model.geom_bodyid] != 0]
    sizes = sizes[sizes > 0.0]
    if sizes.size:
        model.stat.meansize = min(model.stat.meansize, _DIAMETER * float(sizes.mean()))
