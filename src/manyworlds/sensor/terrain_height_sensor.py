"""How high frames are above the ground."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from manyworlds.sensor.raycast_sensor import RayCastData, RayCastSensor, RayCastSensorCfg
from manyworlds.utils.math import dot

_REDUCTIONS = ("min", "max", "mean", "none")


@dataclass
class TerrainHeightData(RayCastData):
    """Heights over what rays met."""

    heights: torch.Tensor
    """Height of each frame over the ground [m], shape [B, F]; with reduction 'none' that over
    each ray's hit, shape [B, F, num_rays_per_frame]."""


@dataclass(kw_only=True)
class TerrainHeightSensorCfg(RayCastSensorCfg):
    """Rays that look for the ground."""

    reduction: str = "min"
    """Which height of a frame's rays is its own: min, max, mean, or none for one per ray."""

    def build(self) -> TerrainHeightSensor:
        """Make the sensor."""
        return TerrainHeightSensor(self)


class TerrainHeightSensor(RayCastSensor):
    """Measures how far the origins of frames are above what their rays hit.

    A ray that hits a surface from behind starts under the ground and has height 0. One that hits
    nothing has `max_distance`; a frame none of whose rays hits has its z, within [0, max_distance].

    Raises:
        ValueError: there is no such reduction.
    """

    noise_fields = ("distances", "heights")
    cfg: TerrainHeightSensorCfg

    def __init__(self, cfg: TerrainHeightSensorCfg) -> None:
        super().__init__(cfg)
        if cfg.reduction not in _REDUCTIONS:
            raise ValueError(
                f"Sensor '{cfg.name}': reduction must be one of {', '.join(_REDUCTIONS)}, "
                f"got '{cfg.reduction}'."
            )

    @property
    def data(self) -> TerrainHeightData:
        """What it measures; computed at most once between updates or resets."""
        data = super().data
        assert isinstance(data, TerrainHeightData)
        return data

    def _finish(self, data: RayCastData, directions: torch.Tensor) -> TerrainHeightData:
        limit = self.cfg.max_distance
        shape = (self.num_frames, self.num_rays_per_frame)
        miss = (data.distances < 0).unflatten(1, shape)
        frame_z = data.frame_pos_w[..., 2:]
        heights = frame_z - data.hit_pos_w[..., 2].unflatten(1, shape)
        behind = dot(data.normals_w, directions).unflatten(1, shape) > 0
        heights = heights.masked_fill(behind, 0.0).masked_fill(miss, limit)
        lost = miss.all(dim=-1, keepdim=True)
        heights = torch.where(lost, frame_z.clamp(0.0, limit), heights)
        if self.cfg.reduction == "mean":
            heights = heights.mean(dim=-1)
        elif self.cfg.reduction != "none":
            heights = getattr(heights, f"a{self.cfg.reduction}")(dim=-1)
        return TerrainHeightData(**vars(data), heights=heights)
