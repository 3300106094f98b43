"""Preparation of models and data for drawing."""

from __future__ import annotations

import math

import mujoco

_ZNEAR = 0.01  # MuJoCo's default, in extents of the model
_NEAREST = 0.05
"""Cameras see what is farther away than this, however large the model is [m]."""


def pose_for_drawing(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Compute what drawing needs from the state: no collisions, no dynamics."""
    for stage in ("kinematics", "comPos", "camlight", "flex", "tendon"):
        getattr(mujoco, f"mj_{stage}")(model, data)


def draw_near_things(model: mujoco.MjModel) -> None:
    """Let cameras of a large model see what is close to them.

    By default MuJoCo cuts off what is nearer than a hundredth of the model's extent: on a terrain
    of 200 m all within 2 m, such as the robot that a camera follows. A model that sets another
    `znear` keeps it.

    Args:
        model: what is drawn, whose `vis.map.znear` is written.
    """
    near = model.vis.map
    if math.isclose(near.znear, _ZNEAR, rel_tol=1e-6):
        near.znear = min(near.znear, _NEAREST / model.stat.extent)
