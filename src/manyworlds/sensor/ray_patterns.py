"""Patterns of rays, in the frame that they are attached to."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import TypeAlias

import mujoco
import torch

Bundle: TypeAlias = "tuple[torch.Tensor, torch.Tensor]"
"""Origins [m] and unit directions, each of shape [num_rays, 3]."""
Vector: TypeAlias = "tuple[float, float, float]"


@dataclass
class GridPatternCfg:
    """Parallel rays on a grid around the frame's origin, with x varying fastest."""

    size: tuple[float, float] = (1.0, 1.0)
    """Extent along x and y [m]."""
    resolution: float = 0.1
    """Distance between neighboring rays [m]."""
    direction: tuple[float, float, float] = (0.0, 0.0, -1.0)
    _: KW_ONLY
    offset: Vector = (0.0, 0.0, 0.0)
    """Position of the pattern's center in the axes of the rays [m]; see `RayCastSensorCfg`."""

    def generate_rays(self, mj_model: mujoco.MjModel | None, device: torch.device | str) -> Bundle:
        """Return the rays.

        Raises:
            ValueError: the grid has no rays, the direction is zero, or the offset is not finite.
        """
        if not self.resolution > 0 or min(self.size) < 0:
            raise ValueError(
                f"GridPatternCfg has size {self.size} and resolution {self.resolution}: "
                "give sizes of at least 0 and a positive resolution."
            )
        # A size of 1.6 has 17 points at 0.1, regardless of rounding in the quotient.
        counts = [math.floor(size / self.resolution + 1e-6) + 1 for size in self.size]
        x, y = (
            (torch.arange(count, dtype=torch.float64) - (count - 1) / 2) * self.resolution
            for count in counts
        )
        grid_y, grid_x = torch.meshgrid(y, x, indexing="ij")
        return _parallel(grid_x.flatten(), grid_y.flatten(), self.direction, self.offset, device)


@dataclass
class PinholeCameraPatternCfg:
    """One ray through the center of each pixel, row by row from the top left.

    Like MuJoCo's cameras, it looks along -z, with x to the right and y up.
    """

    width: int = 16
    """Number of pixels per row."""
    height: int = 12
    """Number of rows."""
    fovy: float = 45.0
    """Vertical field of view [deg]."""
    camera_name: str | None = None
    """Camera of the model that defines resolution and optics, instead of the other fields."""
    _: KW_ONLY
    intrinsics: tuple[float, float, float, float] | None = None
    """Focal lengths along x and y and the principal point [pixel], instead of `fovy`."""
    offset: Vector = (0.0, 0.0, 0.0)
    """Position of the camera in the axes of the rays [m]; see `RayCastSensorCfg`."""

    @classmethod
    def from_mujoco_camera(cls, camera_name: str) -> PinholeCameraPatternCfg:
        """Use resolution and optics of a camera of the model, by its name in the scene."""
        return cls(camera_name=camera_name)

    @classmethod
    def from_intrinsic_matrix(
        cls, intrinsic_matrix: list[float], width: int, height: int
    ) -> PinholeCameraPatternCfg:
        """Use the optics of a 3 x 3 intrinsic matrix [pixel], row by row.

        Raises:
            ValueError: the matrix does not have nine elements, or a focal length is not positive.
        """
        if len(intrinsic_matrix) != 9 or min(intrinsic_matrix[0], intrinsic_matrix[4]) <= 0:
            raise ValueError(
                "from_intrinsic_matrix needs the nine elements [fx, 0, cx, 0, fy, cy, 0, 0, 1] "
                f"with positive fx and fy, got {intrinsic_matrix}."
            )
        fx, _, cx, _, fy, cy = intrinsic_matrix[:6]
        fovy = math.degrees(2 * math.atan(height / (2 * fy)))
        return cls(width=width, height=height, fovy=fovy, intrinsics=(fx, fy, cx, cy))

    def generate_rays(self, mj_model: mujoco.MjModel | None, device: torch.device | str) -> Bundle:
        """Return the rays.

        Raises:
            ValueError: the camera does not exist, there are no pixels, or the offset is not finite.
        """
        if self.camera_name is not None:
            return self._of_camera(mj_model).generate_rays(mj_model, device)
        if min(self.width, self.height) < 1 or not 0 < self.fovy < 180:
            raise ValueError(
                f"PinholeCameraPatternCfg has {self.width} x {self.height} pixels and fovy "
                f"{self.fovy}: give at least one pixel, and fovy between 0 and 180 degrees."
            )
        focal = 0.5 * self.height / math.tan(math.radians(self.fovy) / 2)
        centred = (focal, focal, self.width / 2, self.height / 2)
        fx, fy, cx, cy = self.intrinsics or centred
        u = torch.arange(self.width, dtype=torch.float64) + 0.5
        v = torch.arange(self.height, dtype=torch.float64) + 0.5
        y, x = torch.meshgrid((cy - v) / fy, (u - cx) / fx, indexing="ij")
        directions = torch.stack([x, y, -torch.ones_like(x)], dim=-1).reshape(-1, 3)
        directions /= directions.norm(dim=-1, keepdim=True)
        directions = directions.to(device, torch.float32)
        return _position(self.offset, device).repeat(len(directions), 1), directions

    def _of_camera(self, mj_model: mujoco.MjModel | None) -> PinholeCameraPatternCfg:
        names: list[str] = []
        if mj_model is not None:
            names = [mj_model.cam(i).name for i in range(mj_model.ncam)]
        if mj_model is None or self.camera_name not in names:
            raise ValueError(
                f"PinholeCameraPatternCfg: there is no camera '{self.camera_name}' in the model, "
                f"which has {names}: use one of these."
            )
        camera = names.index(self.camera_name)
        width, height = map(int, mj_model.cam_resolution[camera])
        fovy = float(mj_model.cam_fovy[camera])
        sensor_width, sensor_height = map(float, mj_model.cam_sensorsize[camera])
        if not sensor_height:
            return PinholeCameraPatternCfg(
                width=width, height=height, fovy=fovy, offset=self.offset
            )
        fx, fy, shift_x, shift_y = map(float, mj_model.cam_intrinsic[camera])
        # If the sensor's aspect ratio differs from the image's, its center part is used.
        pixel = min(sensor_width / width, sensor_height / height)
        # MuJoCo's principal point is relative to the center [m], positive to the left and up.
        centre = (width / 2 - shift_x / pixel, height / 2 - shift_y / pixel)
        optics = (fx / pixel, fy / pixel, *centre)
        return PinholeCameraPatternCfg(
            width=width, height=height, fovy=fovy, intrinsics=optics, offset=self.offset
        )


@dataclass
class RingPatternCfg:
    """Parallel rays on circles around the frame's origin, from the center outward."""

    @dataclass
    class Ring:
        """Points on a circle, counterclockwise from the x axis."""

        radius: float
        """Radius [m]."""
        num_samples: int

    rings: tuple[Ring, ...]
    include_center: bool = True
    """Start with a ray at the center."""
    direction: tuple[float, float, float] = (0.0, 0.0, -1.0)
    _: KW_ONLY
    offset: Vector = (0.0, 0.0, 0.0)
    """Position of the pattern's center in the axes of the rays [m]; see `RayCastSensorCfg`."""

    @classmethod
    def single_ring(
        cls,
        radius: float = 0.1,
        num_samples: int = 8,
        include_center: bool = True,
        direction: tuple[float, float, float] = (0.0, 0.0, -1.0),
        *,
        offset: Vector = (0.0, 0.0, 0.0),
    ) -> RingPatternCfg:
        """Return a pattern of one circle."""
        ring = cls.Ring(radius=radius, num_samples=num_samples)
        return cls(rings=(ring,), include_center=include_center, direction=direction, offset=offset)

    def generate_rays(self, mj_model: mujoco.MjModel | None, device: torch.device | str) -> Bundle:
        """Return the rays.

        Raises:
            ValueError: a ring has no samples, there are no rays, or a vector is not valid.
        """
        if any(ring.num_samples < 1 or ring.radius < 0 for ring in self.rings) or not (
            self.rings or self.include_center
        ):
            raise ValueError(
                f"RingPatternCfg has rings {self.rings}: give at least one ring or the center, "
                "and each ring a radius of at least 0 and a sample."
            )
        radii = [0.0] * self.include_center
        angles = [0.0] * self.include_center
        for ring in self.rings:
            radii += [ring.radius] * ring.num_samples
            angles += [2 * math.pi * i / ring.num_samples for i in range(ring.num_samples)]
        radius = torch.tensor(radii, dtype=torch.float64)
        angle = torch.tensor(angles, dtype=torch.float64)
        return _parallel(
            radius * angle.cos(), radius * angle.sin(), self.direction, self.offset, device
        )


PatternCfg: TypeAlias = GridPatternCfg | PinholeCameraPatternCfg | RingPatternCfg
"""Arrangement of rays around a frame."""


def _parallel(
    x: torch.Tensor,
    y: torch.Tensor,
    direction: Vector,
    offset: Vector,
    device: torch.device | str,
) -> Bundle:
    vector = torch.tensor(direction, dtype=torch.float64)
    if not vector.norm() > 0:
        raise ValueError(f"A ray pattern has direction {direction}: give one that is not zero.")
    origins = torch.stack([x, y, torch.zeros_like(x)], dim=-1).to(device, torch.float32)
    origins += _position(offset, device)
    return origins, (vector / vector.norm()).to(device, torch.float32).repeat(len(origins), 1)


def _position(offset: Vector, device: torch.device | str) -> torch.Tensor:
    if len(offset) != 3 or not all(math.isfinite(value) for value in offset):
        raise ValueError(f"A ray pattern has offset {offset}: give three finite numbers.")
    return torch.tensor(offset, dtype=torch.float32, device=device)
