"""A sensor of the height of frames above the terrain."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from manyworlds.sensor.raycast_sensor import RayCastData, RayCastSensor, RayCastSensorCfg
from manyworlds.utils.math import dot

_REDUCTIONS = ("min", "max", "mean", "none")


@dataclass(init=False)
class TerrainHeightData(RayCastData):
    """Hits of rays, and heights above them.

    Raises:
        ValueError: there are no heights, or no orientations of frames.
    """

    heights: torch.Tensor
    """Height of each frame above the terrain [m], shape [B, F]; with reduction 'none', height above
    each ray's hit, shape [B, F, num_rays_per_frame]."""

    def __init__(
        self,
        distances: torch.Tensor,
        normals_w: torch.Tensor,
        hit_pos_w: torch.Tensor,
        pos_w: torch.Tensor,
        quat_w: torch.Tensor | None = None,
        frame_pos_w: torch.Tensor | None = None,
        frame_quat_w: torch.Tensor | None = None,
        heights: torch.Tensor | None = None,
        frame_mat_w: torch.Tensor | None = None,
    ) -> None:
        super().__init__(
            *(distances, normals_w, hit_pos_w, pos_w, quat_w),
            *(frame_pos_w, frame_quat_w, frame_mat_w),
        )
        if heights is None:
            raise ValueError("TerrainHeightData needs heights.")
        self.heights = heights


@dataclass
class TerrainHeightSensorCfg(RayCastSensorCfg):
    """Configuration of a sensor whose rays measure the height above the terrain."""

    reduction: str = "min"
    """Reduction over the rays of a frame: min, max, mean, or none for one height per ray."""

    def build(self) -> TerrainHeightSensor:
        """Build the sensor."""
        return TerrainHeightSensor(self)


class TerrainHeightSensor(RayCastSensor):
    """Measures the height of frame origins above the points that their rays hit.

    A ray that hits a surface from behind starts below the terrain and has height 0. A ray that
    misses has height `max_distance`; if all rays of a frame miss, its height is its z coordinate,
    clamped to [0, max_distance].

    Raises:
        ValueError: `reduction` is unknown.
    """

    noise_fields = ("distances", "heights")

    def __init__(self, cfg: TerrainHeightSensorCfg) -> None:
        super().__init__(cfg)
        if cfg.reduction not in _REDUCTIONS:
            raise ValueError(
                f"Sensor '{cfg.name}': reduction must be one of {', '.join(_REDUCTIONS)}, "
                f"got '{cfg.reduction}'."
            )
        self._reduction = cfg.reduction

    @property
    def data(self) -> TerrainHeightData:
        """Measured data; computed at most once between updates or resets."""
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
        if self._reduction == "mean":
            heights = heights.mean(dim=-1)
        elif self._reduction == "min":
            heights = heights.amin(dim=-1)
        elif self._reduction == "max":
            heights = heights.amax(dim=-1)
        return TerrainHeightData(**vars(data), heights=heights)
