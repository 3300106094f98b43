"""Estimation of the terrain's slope from ray hits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from manyworlds.sensor import RayCastSensor

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

_FLAT = 1e-6
"""Ratio of the spreads of points across and along a line below which they count as collinear."""


def fit_terrain_normal(points: torch.Tensor, valid_mask: torch.Tensor) -> torch.Tensor:
    """Return upward unit normals of planes `z = a x + b y + c` fitted by least squares.

    Args:
        points: points in the world [m], shape [num_envs, N, 3].
        valid_mask: mask of the points to use, shape [num_envs, N].

    Returns:
        Normals, shape [num_envs, 3]; vertical where the used points do not span a plane.
    """
    weight = valid_mask.unsqueeze(-1).to(points.dtype)
    count = weight.sum(dim=1, keepdim=True).clamp_(min=1.0)
    # Unused points may have any value, including infinity.
    points = points.masked_fill(~valid_mask.unsqueeze(-1), 0.0)
    centered = (points - points.sum(dim=1, keepdim=True) / count) * weight
    cov = centered.transpose(1, 2) @ centered
    xx = cov[:, 0, 0]
    xy = cov[:, 0, 1]
    yy = cov[:, 1, 1]
    xz = cov[:, 0, 2]
    yz = cov[:, 1, 2]
    determinant = xx * yy - xy * xy
    spans = determinant > _FLAT * (xx + yy).square()
    slope = torch.stack([yy * xz - xy * yz, xx * yz - xy * xz], dim=1)
    slope = slope / torch.where(spans, determinant, 1.0).unsqueeze(1)
    slope = torch.where(spans.unsqueeze(1), slope, 0.0)
    normal = torch.cat([-slope, torch.ones_like(slope[:, :1])], dim=1)
    return normal / normal.norm(dim=1, keepdim=True)


def terrain_normal_from_sensors(
    env: ManagerBasedRlEnv, sensor_names: tuple[str, ...], max_points: int = 32
) -> torch.Tensor:
    """Return the upward unit normal of the terrain around each robot, shape [num_envs, 3].

    Args:
        env: the environment.
        sensor_names: ray-cast sensors whose hits are used.
        max_points: maximum number of rays of each sensor, evenly spaced.

    Raises:
        TypeError: a sensor casts no rays.
    """
    points = []
    valid = []
    for name in sensor_names:
        sensor = env.scene.sensor(name, RayCastSensor)
        every = -(-sensor.num_rays // max_points)
        points.append(sensor.data.hit_pos_w[:, ::every])
        valid.append(sensor.data.distances[:, ::every] >= 0.0)
    return fit_terrain_normal(torch.cat(points, dim=1), torch.cat(valid, dim=1))
