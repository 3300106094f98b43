"""Rays of an exported policy's sensors, in plain MuJoCo."""

from __future__ import annotations

import mujoco
import numpy as np
import torch

from manyworlds.sensor.raycast_sensor import RaysDescription, heading


def height_scan(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    rays: RaysDescription,
    offset: float = 0.0,
    miss_value: float | None = None,
) -> np.ndarray:
    """Return the heights of frames above the hits of their rays [m], as `mdp.height_scan`.

    Args:
        model: the compiled model.
        data: its state, with the poses computed.
        rays: the sensor's rays.
        offset: value that is subtracted from the heights [m].
        miss_value: value for rays without a hit [m]; None for the sensor's maximum distance.

    Returns:
        The heights, ordered by frame, shape [num_rays].
    """
    if miss_value is None:
        miss_value = rays["max_distance"]
    offsets = np.array(rays["offsets"])
    directions = np.array(rays["directions"])
    groups = None
    if rays["geom_groups"] is not None:
        groups = np.isin(np.arange(mujoco.mjNGROUP), rays["geom_groups"]).astype(np.uint8)
    heights = []
    for frame in rays["frames"]:
        pose = getattr(data, frame["type"])(frame["name"])
        axes = _axes_of_rays(pose.xmat.reshape(3, 3), rays["alignment"])
        exclude = -1
        if frame["exclude"] is not None:
            exclude = model.body(frame["exclude"]).id
        origins = pose.xpos + offsets @ axes.T
        for origin, direction in zip(origins, directions @ axes.T, strict=True):
            distance = mujoco.mj_ray(model, data, origin, direction, groups, True, exclude, None)
            if 0.0 <= distance <= rays["max_distance"]:
                hit = origin[2] + distance * direction[2]
                heights.append(pose.xpos[2] - hit - offset)
            else:
                heights.append(miss_value)
    return np.array(heights)


def _axes_of_rays(frame: np.ndarray, alignment: str) -> np.ndarray:
    """Return the rotation matrix of the rays of a frame, shape [3, 3]."""
    if alignment == "world":
        return np.eye(3)
    if alignment == "yaw":
        return heading(torch.from_numpy(frame)).numpy()
    return frame
