"""Random numbers, positions and rotations from the default torch generator of a device."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch

from manyworlds.utils.devices import constants
from manyworlds.utils.math.frames import make_pose
from manyworlds.utils.math.quaternion import axis_quat, matrix_from_quat, quat_from_euler_xyz
from manyworlds.validation.rules import refuse

Size = int | tuple[int, ...]
_POSE_AXES = ("x", "y", "z", "roll", "pitch", "yaw")


def default_orientation(num: int, device: torch.device | str) -> torch.Tensor:
    """Return identity quaternions, shape [num, 4]."""
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
    """Draw from the symmetric triangular distribution over [lower, upper]; shape `size`."""
    mean = 0.5 * (torch.rand(size, device=device) + torch.rand(size, device=device))
    return lower + (upper - lower) * mean


def sample_uniform(
    lower: torch.Tensor | float,
    upper: torch.Tensor | float,
    size: Size,
    device: torch.device | str,
) -> torch.Tensor:
    """Draw uniformly from [lower, upper), shape `size`; bounds broadcast to it."""
    return lower + (upper - lower) * torch.rand(size, device=device)


def pose_bounds(
    ranges: Mapping[str, tuple[float, float]], device: torch.device | str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return lower and upper bounds of x, y, z, roll, pitch, yaw, to be read only, shape [6] each.

    Args:
        ranges: minimum and maximum by name [m or rad]; missing names give zero.
        device: device of the result.

    Raises:
        ValueError: a name is not one of the six.
    """
    unknown = set(ranges) - set(_POSE_AXES)
    if unknown:
        refuse(
            f"A range of poses or velocities has keys {sorted(unknown)}, but keys must "
            f"be among {', '.join(_POSE_AXES)}."
        )
    rows = []
    for axis in _POSE_AXES:
        low, high = ranges.get(axis, (0.0, 0.0))
        rows.append((float(low), float(high)))
    bounds = constants(tuple(rows), device)
    return bounds[:, 0], bounds[:, 1]


def sample_pose_range(
    ranges: Mapping[str, tuple[float, float]], num: int, device: torch.device | str
) -> torch.Tensor:
    """Draw rows of x, y, z, roll, pitch, yaw, shape [num, 6], uniformly from one range each.

    See `pose_bounds`.
    """
    low, high = pose_bounds(ranges, device)
    return sample_uniform(low, high, (num, len(_POSE_AXES)), device)


def sample_log_uniform(
    lower: torch.Tensor | float,
    upper: torch.Tensor | float,
    size: Size,
    device: torch.device | str,
) -> torch.Tensor:
    """Draw from [lower, upper), uniform in the logarithm, shape `size`; bounds are positive."""
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
    """Draw from normal distributions, shape `size`; `mean` and `std` broadcast to it."""
    return mean + std * torch.randn(size, device=device)


def sample_cylinder(
    radius: float, h_range: tuple[float, float], size: Size, device: torch.device | str
) -> torch.Tensor:
    """Draw points [m], shape [*size, 3], uniformly on the lateral surface of a cylinder about z.

    Args:
        radius: radius of the cylinder [m].
        h_range: minimum and maximum z [m].
        size: leading dimensions of the result.
        device: device of the result.
    """
    angle = sample_uniform(-math.pi, math.pi, size, device)
    height = sample_uniform(*h_range, size, device)
    return torch.stack([radius * angle.cos(), radius * angle.sin(), height], dim=-1)


def generate_random_rotation(rot_boundary: float = 2.0 * math.pi) -> torch.Tensor:
    """Draw a rotation matrix, shape [3, 3], with Euler angles uniform in [0, rot_boundary)."""
    roll, pitch, yaw = sample_uniform(0.0, rot_boundary, 3, "cpu")
    return matrix_from_quat(quat_from_euler_xyz(roll, pitch, yaw))


def generate_random_translation(pos_boundary: float = 1.0) -> torch.Tensor:
    """Draw a position [m], shape [3], uniformly from a cube about the origin."""
    return sample_uniform(-pos_boundary, pos_boundary, 3, "cpu")


def generate_random_transformation_matrix(
    pos_boundary: float = 1.0, rot_boundary: float = 2.0 * math.pi
) -> torch.Tensor:
    """Draw a pose, shape [4, 4], with random translation and rotation."""
    return make_pose(
        generate_random_translation(pos_boundary), generate_random_rotation(rot_boundary)
    )
