"""Rays of an exported policy's sensors, in plain MuJoCo."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
    heights = []
    for pose, origins, directions, distances in _cast(model, data, rays):
        hits = (distances >= 0.0) & (distances <= rays["max_distance"])
        depths = pose.xpos[2] - (origins[:, 2] + distances * directions[:, 2]) - offset
        heights.append(np.where(hits, depths, miss_value))
    return np.concatenate(heights)


def ray_distances(model: mujoco.MjModel, data: mujoco.MjData, rays: RaysDescription) -> np.ndarray:
    """Return distances along the rays, -1 where nothing is hit [m], shape [num_rays].

    Args:
        model: the compiled model.
        data: its state, with the poses computed.
        rays: the sensor's rays.
    """
    return np.concatenate([distances for *_, distances in _cast(model, data, rays)])


def _cast(
    model: mujoco.MjModel, data: mujoco.MjData, rays: RaysDescription
) -> Iterator[tuple[Any, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield the pose, and origins, directions and distances of the rays, of each frame."""
    offsets = np.array(rays["offsets"])
    directions = np.array(rays["directions"])
    groups = None
    if rays["geom_groups"] is not None:
        groups = np.isin(np.arange(mujoco.mjNGROUP), rays["geom_groups"]).astype(np.uint8)
    for frame in rays["frames"]:
        pose = getattr(data, frame["type"])(frame["name"])
        axes = _axes_of_rays(pose.xmat.reshape(3, 3), rays["alignment"])
        exclude = -1
        if frame["exclude"] is not None:
            exclude = model.body(frame["exclude"]).id
        origins = pose.xpos + offsets @ axes.T
        turned = directions @ axes.T
        distances = [
            mujoco.mj_ray(model, data, origin, direction, groups, True, exclude, None)
            for origin, direction in zip(origins, turned, strict=True)
        ]
        yield pose, origins, turned, np.array(distances)


def _axes_of_rays(frame: np.ndarray, alignment: str) -> np.ndarray:
    """Return the rotation matrix of the rays of a frame, shape [3, 3]."""
    if alignment == "world":
        return np.eye(3)
    if alignment == "yaw":
        return heading(torch.from_numpy(frame)).numpy()
    return frame
