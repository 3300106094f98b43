"""Drawing numbers, positions and rotations from torch's generator of the device."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch

from manyworlds.utils.math.frames import make_pose
from manyworlds.utils.math.quaternion import axis_quat, matrix_from_quat, quat_from_euler_xyz

Size = int | tuple[int, ...]
_POSE_AXES = ("x", "y", "z", "roll", "pitch", "yaw")


def default_orientation(num: int, device: torch.device | str) -> torch.Tensor:
    """Return quaternions of no rotation, shape [num, 4]."""
    return torch.tensor([1.0, 0.0, 0.0, 0.0], device=device).repeat(num, 1)


def random_orientation(num: int, device: torch.device | str) -> torch.Tensor:
    """Draw quaternions, shape [num, 4], uniformly over all rotations.

    The direction of a normally distributed 4-vector is uniform. Source: G. Marsaglia, "Choosing a
    point from the surface of a sphere" (1972).
    """
    return torch.nn.functional.normalize(torch.randn(num, 4, device=device), dim=-1)


def random_yaw_orientation(num: int, device: torch.device | str) -> torch.Tensor:
    """Draw quaternions, shape [num, 4], of rotations about z, uniform over the circle."""
    return axis_quat(sample_uniform(-math.pi, math.pi, num, device), "Z")


def sample_triangle(
    lower: float, upper: float, size: Size, device: torch.device | str
) -> torch.Tensor:
    """Draw from the symmetric triangular distribution over [lower, upper]: most in the middle."""
    mean = 0.5 * (torch.rand(size, device=device) + torch.rand(size, device=device))
    return lower + (upper - lower) * mean


def sample_uniform(
    lower: torch.Tensor | float,
    upper: torch.Tensor | float,
    size: Size,
    device: torch.device | str,
) -> torch.Tensor:
    """Draw uniformly from [lower, upper); bounds broadcast to `size`."""
    return lower + (upper - lower) * torch.rand(size, device=device)


def sample_pose_range(
    ranges: Mapping[str, tuple[float, float]], num: int, device: torch.device | str
) -> torch.Tensor:
    """Draw rows of x, y, z, roll, pitch, yaw, shape [num, 6], uniformly from a range for each.

    Args:
        ranges: lowest and highest value by name; what is left out is zero.
        num: how many rows.
        device: where to.

    Raises:
        ValueError: a name is none of the six.
    """
    if unknown := set(ranges) - set(_POSE_AXES):
        raise ValueError(
            f"A range of poses or velocities has keys {sorted(unknown)}, but can have "
            f"{', '.join(_POSE_AXES)} only."
        )
    bounds = torch.tensor([ranges.get(axis, (0.0, 0.0)) for axis in _POSE_AXES], device=device)
    return sample_uniform(bounds[:, 0], bounds[:, 1], (num, len(_POSE_AXES)), device)


def sample_log_uniform(
    lower: torch.Tensor | float,
    upper: torch.Tensor | float,
    size: Size,
    device: torch.device | str,
) -> torch.Tensor:
    """Draw from [lower, upper), whose logarithm is uniform; bounds are positive."""
    low, high = (
        torch.log(bound) if isinstance(bound, torch.Tensor) else math.log(bound)
        for bound in (lower, upper)
    )
    return torch.exp(sample_uniform(low, high, size, device))


def sample_gaussian(
    mean: torch.Tensor | float,
    std: torch.Tensor | float,
    size: Size,
    device: torch.device | str,
) -> torch.Tensor:
    """Draw from normal distributions; `mean` and `std` broadcast to `size`."""
    return mean + std * torch.randn(size, device=device)


def sample_cylinder(
    radius: float, h_range: tuple[float, float], size: Size, device: torch.device | str
) -> torch.Tensor:
    """Draw points [m], shape [*size, 3], uniformly on the side of a cylinder about z.

    Args:
        radius: radius of the cylinder [m].
        h_range: lowest and highest z [m].
        size: how many points.
        device: where to put them.
    """
    angle = sample_uniform(-math.pi, math.pi, size, device)
    height = sample_uniform(*h_range, size, device)
    return torch.stack([radius * angle.cos(), radius * angle.sin(), height], dim=-1)


def generate_random_rotation(rot_boundary: float = 2.0 * math.pi) -> torch.Tensor:
    """Draw a rotation matrix, shape [3, 3], of Euler angles that are uniform in [0, boundary)."""
    roll, pitch, yaw = sample_uniform(0.0, rot_boundary, 3, "cpu")
    return matrix_from_quat(quat_from_euler_xyz(roll, pitch, yaw))


def generate_random_translation(pos_boundary: float = 1.0) -> torch.Tensor:
    """Draw a position [m], shape [3], uniformly from a cube about the origin."""
    return sample_uniform(-pos_boundary, pos_boundary, 3, "cpu")


def generate_random_transformation_matrix(
    pos_boundary: float = 1.0, rot_boundary: float = 2.0 * math.pi
) -> torch.Tensor:
    """Draw a pose, shape [4, 4], of a random translation and a random rotation."""
    return make_pose(
        generate_random_translation(pos_boundary), generate_random_rotation(rot_boundary)
    )
