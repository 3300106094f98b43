"""Interpolation of rotations and of poses."""

from __future__ import annotations

import math

import torch

from manyworlds.utils.math.frames import make_pose, unmake_pose
from manyworlds.utils.math.quaternion import (
    matrix_from_quat,
    quat_box_minus,
    quat_box_plus,
    quat_from_matrix,
)
from manyworlds.utils.math.vectors import atan2


def quat_slerp(q1: torch.Tensor, q2: torch.Tensor, tau: torch.Tensor | float) -> torch.Tensor:
    """Interpolate from `q1` to `q2` along the shortest great arc, at constant speed.

    Source: K. Shoemake, "Animating rotation with quaternion curves" (1985).

    Args:
        q1: unit quaternions, shape [..., 4].
        q2: unit quaternions, shape [..., 4].
        tau: fraction of the arc, from 0 to 1; one number, or shape [...].

    Returns:
        Unit quaternions, shape [..., 4].
    """
    q2 = torch.where((q1 * q2).sum(dim=-1, keepdim=True) < 0.0, -q2, q2)
    tau = torch.as_tensor(tau, dtype=q1.dtype, device=q1.device).unsqueeze(-1)
    # Unlike the arc cosine of the product, also exact for small angles: W. Kahan, "How futile are
    # mindless assessments of roundoff" (2006). Divided by pi, since sinc multiplies by it.
    chord, sum_ = (torch.linalg.vector_norm(q, dim=-1, keepdim=True) for q in (q1 - q2, q1 + q2))
    arc = 2.0 / math.pi * atan2(chord, sum_)
    weights = ((1.0 - tau) * torch.sinc((1.0 - tau) * arc), tau * torch.sinc(tau * arc))
    return (weights[0] * q1 + weights[1] * q2) / torch.sinc(arc)


def interpolate_rotations(
    R1: torch.Tensor,  # noqa: N803
    R2: torch.Tensor,  # noqa: N803
    num_steps: int,
    axis_angle: bool = True,
) -> torch.Tensor:
    """Return rotation matrices, shape [num_steps + 2, 3, 3], from `R1` to `R2`.

    Args:
        R1: the first rotation matrix, shape [3, 3].
        R2: the last rotation matrix, shape [3, 3].
        num_steps: number of rotations between them.
        axis_angle: rotate about the fixed axis between them, instead of using `quat_slerp`. The
            results differ only for opposite rotations, where two paths exist.
    """
    tau = torch.linspace(0.0, 1.0, num_steps + 2, dtype=R1.dtype, device=R1.device)
    return _rotations(R1, R2, tau, axis_angle)


def interpolate_poses(
    pose_1: torch.Tensor,
    pose_2: torch.Tensor,
    num_steps: int | None = None,
    step_size: float | None = None,
    perturb: bool = False,
) -> tuple[torch.Tensor, int]:
    """Return poses along a straight line with constant angular speed, and the number between.

    Args:
        pose_1: the first pose, shape [4, 4].
        pose_2: the last pose, shape [4, 4].
        num_steps: number of poses between them.
        step_size: largest step [m], instead of `num_steps`; copies the distance to the host.
        perturb: move each intermediate pose along the line by up to half a step, at random.

    Returns:
        Poses, shape [num_steps + 2, 4, 4], and num_steps.

    Raises:
        ValueError: not exactly one of `num_steps` and `step_size` is given.
    """
    pos_1, rot_1 = unmake_pose(pose_1)
    pos_2, rot_2 = unmake_pose(pose_2)
    if (num_steps is None) == (step_size is None):
        raise ValueError(
            f"Give one of num_steps and step_size, got num_steps={num_steps} and "
            f"step_size={step_size}."
        )
    if num_steps is None:
        distance = torch.linalg.vector_norm(pos_2 - pos_1).item()
        num_steps = max(math.ceil(distance / step_size) - 1, 0)
    tau = torch.linspace(0.0, 1.0, num_steps + 2, dtype=pose_1.dtype, device=pose_1.device)
    if perturb:
        tau[1:-1] += (torch.rand_like(tau[1:-1]) - 0.5) / (num_steps + 1)
    pos = torch.lerp(pos_1, pos_2, tau[:, None])
    return make_pose(pos, _rotations(rot_1, rot_2, tau, axis_angle=True)), num_steps


def _rotations(
    first: torch.Tensor, last: torch.Tensor, tau: torch.Tensor, axis_angle: bool
) -> torch.Tensor:
    q1 = quat_from_matrix(first)
    q2 = quat_from_matrix(last)
    if axis_angle:
        return matrix_from_quat(quat_box_plus(q1, tau[:, None] * quat_box_minus(q2, q1)))
    return matrix_from_quat(quat_slerp(q1, q2, tau))
