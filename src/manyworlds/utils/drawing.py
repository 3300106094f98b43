"""Preparation of models and data for rendering."""

from __future__ import annotations

import math

import mujoco

_ZNEAR = 0.01  # MuJoCo's default, relative to the model's extent
_NEAREST = 0.05
"""Upper bound of the near clipping distance of cameras [m], for models of any size."""


def pose_for_drawing(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Compute the fields that rendering needs from the state, without collisions or dynamics."""
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_camlight(model, data)
    mujoco.mj_flex(model, data)
    mujoco.mj_tendon(model, data)


def draw_near_things(model: mujoco.MjModel) -> None:
    """Reduce the near clipping distance of a large model, so that nearby objects are visible.

    By default, MuJoCo clips at a hundredth of the model's extent: on a terrain of 200 m, everything
    within 2 m, such as the robot that a camera follows. A model with another `znear` keeps it.

    Args:
        model: the model to render, whose `vis.map.znear` is written.
    """
    near = model.vis.map
    if math.isclose(near.znear, _ZNEAR, rel_tol=1e-6):
        near.znear = min(near.znear, _NEAREST / model.stat.extent)
