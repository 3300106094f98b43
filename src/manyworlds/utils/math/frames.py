"""Frames: positions [m], shape [..., 3], with quaternions (wxyz), shape [..., 4], or 4x4 poses.

`t01` and `q01` are the position and orientation of frame 1, expressed in frame 0. Leading
dimensions broadcast.
"""

from __future__ import annotations

from typing import Literal

import torch

from manyworlds.utils.math.quaternion import (
    axis_angle_from_quat,
    matrix_from_quat,
    quat_apply,
    quat_apply_inverse,
    quat_box_plus,
    quat_conjugate,
    quat_mul,
    quat_unique,
)
from manyworlds.utils.math.vectors import cross, require_shape


def is_identity_pose(pos: torch.Tensor, rot: torch.Tensor) -> bool:
    """Return whether all poses are the identity up to rounding; waits for the device."""
    identity = torch.zeros_like(rot)
    identity[..., 0] = 1.0
    return torch.allclose(pos, torch.zeros_like(pos)) and torch.allclose(quat_unique(rot), identity)


def combine_frame_transforms(
    t01: torch.Tensor,
    q01: torch.Tensor,
    t12: torch.Tensor | None = None,
    q12: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return position [..., 3] and orientation [..., 4] of frame 2, expressed in frame 0.

    Args:
        t01: position of frame 1 in frame 0 [m], shape [..., 3].
        q01: orientation of frame 1 in frame 0, shape [..., 4].
        t12: position of frame 2 in frame 1 [m], shape [..., 3]; None is no translation.
        q12: orientation of frame 2 in frame 1, shape [..., 4]; None is no rotation.
    """
    t02 = t01
    if t12 is not None:
        t02 = t01 + quat_apply(q01, t12)
    q02 = q01
    if q12 is not None:
        q02 = quat_mul(q01, q12)
    return t02, q02


def subtract_frame_transforms(
    t01: torch.Tensor,
    q01: torch.Tensor,
    t02: torch.Tensor | None = None,
    q02: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return position [..., 3] and orientation [..., 4] of frame 2, expressed in frame 1.

    Args:
        t01: position of frame 1 in frame 0 [m], shape [..., 3].
        q01: orientation of frame 1 in frame 0, shape [..., 4].
        t02: position of frame 2 in frame 0 [m], shape [..., 3]; None is the origin.
        q02: orientation of frame 2 in frame 0, shape [..., 4]; None is no rotation.
    """
    q10 = quat_conjugate(q01)
    way = -t01
    if t02 is not None:
        way = t02 - t01
    q12 = q10
    if q02 is not None:
        q12 = quat_mul(q10, q02)
    return quat_apply(q10, way), q12


def rigid_body_twist_transform(
    v0: torch.Tensor, w0: torch.Tensor, t01: torch.Tensor, q01: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Transform the velocity of a rigid body from frame 0 to frame 1, both fixed to it.

    Args:
        v0: velocity of the origin of frame 0 [m/s], in frame 0, shape [..., 3].
        w0: angular velocity [rad/s], in frame 0, shape [..., 3].
        t01: position of frame 1 in frame 0 [m], shape [..., 3].
        q01: orientation of frame 1 in frame 0, shape [..., 4].

    Returns:
        Velocity of the origin of frame 1 [m/s] and angular velocity [rad/s], in frame 1.
    """
    v1 = v0 + cross(w0, t01)
    return quat_apply_inverse(q01, v1), quat_apply_inverse(q01, w0)


def compute_pose_error(
    t01: torch.Tensor,
    q01: torch.Tensor,
    t02: torch.Tensor,
    q02: torch.Tensor,
    rot_error_type: Literal["quat", "axis_angle"] = "axis_angle",
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the errors from frame 1 to frame 2, in frame 0: t02 - t01 [m], q02 * inverse(q01).

    Args:
        t01: positions [m], shape [..., 3].
        q01: orientations, shape [..., 4].
        t02: desired positions [m], shape [..., 3].
        q02: desired orientations, shape [..., 4].
        rot_error_type: rotation as a quaternion, or as the shortest rotation vector [rad].

    Returns:
        Position error [m], shape [..., 3], and rotation error, shape [..., 4] or [..., 3].

    Raises:
        ValueError: `rot_error_type` is unknown.
    """
    if rot_error_type not in ("quat", "axis_angle"):
        raise ValueError(
            f"There is no rotation error type '{rot_error_type}': use 'quat' or 'axis_angle'."
        )
    error = quat_mul(q02, quat_conjugate(q01))
    if rot_error_type == "axis_angle":
        error = axis_angle_from_quat(error)
    return t02 - t01, error


def apply_delta_pose(
    source_pos: torch.Tensor,
    source_rot: torch.Tensor,
    delta_pose: torch.Tensor,
    eps: float = 1e-6,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Apply pose errors, as `compute_pose_error` returns them, to poses.

    Args:
        source_pos: positions [m], shape [..., 3].
        source_rot: orientations, shape [..., 4].
        delta_pose: translation [m] and rotation vector [rad], shape [..., 6].
        eps: half angle [rad] below which a series replaces the closed form.

    Returns:
        Positions [m], shape [..., 3], and orientations, shape [..., 4].
    """
    return source_pos + delta_pose[..., :3], quat_box_plus(source_rot, delta_pose[..., 3:], eps)


def transform_points(
    points: torch.Tensor, pos: torch.Tensor | None = None, quat: torch.Tensor | None = None
) -> torch.Tensor:
    """Transform point clouds from frames to the parent frame, shape [..., P, 3].

    Args:
        points: points [m], shape [..., P, 3]; a single cloud broadcasts to several frames.
        pos: positions of the frames [m], shape [..., 3]; None is no translation.
        quat: orientations of the frames, shape [..., 4]; None is no rotation.

    Raises:
        ValueError: an argument has another shape.
    """
    if points.ndim < 2 or points.shape[-1] != 3:
        raise ValueError(f"'points' must have shape (..., P, 3), got {tuple(points.shape)}.")
    if quat is not None:
        require_shape("quat", quat, (4,))
        points = points @ matrix_from_quat(quat).mT
    if pos is not None:
        require_shape("pos", pos, (3,))
        points = points + pos.unsqueeze(-2)
    return points


def make_pose(pos: torch.Tensor, rot: torch.Tensor) -> torch.Tensor:
    """Return poses [..., 4, 4] of positions, shape [..., 3], and rotation matrices [..., 3, 3]."""
    pose = torch.nn.functional.pad(torch.cat([rot, pos.unsqueeze(-1)], dim=-1), (0, 0, 0, 1))
    return pose + torch.nn.functional.pad(pose.new_ones(1, 1), (3, 0, 3, 0))


def unmake_pose(pose: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return positions [..., 3] and rotation matrices [..., 3, 3] of poses, shape [..., 4, 4]."""
    return pose[..., :3, 3], pose[..., :3, :3]


def pose_inv(pose: torch.Tensor) -> torch.Tensor:
    """Return inverse poses, shape [..., 4, 4], using the transpose of the rotation."""
    pos, rot = unmake_pose(pose)
    return make_pose(-(rot.mT @ pos.unsqueeze(-1)).squeeze(-1), rot.mT)


def pose_in_A_to_pose_in_B(  # noqa: N802
    pose_in_A: torch.Tensor,  # noqa: N803
    pose_A_in_B: torch.Tensor,  # noqa: N803
) -> torch.Tensor:
    """Return poses in frame B, shape [..., 4, 4], of poses in frame A and the pose of A in B."""
    return pose_A_in_B @ pose_in_A


def transform_poses_from_frame_A_to_frame_B(  # noqa: N802
    src_poses: torch.Tensor,
    frame_A: torch.Tensor,  # noqa: N803
    frame_B: torch.Tensor,  # noqa: N803
) -> torch.Tensor:
    """Transform poses so that they have the same pose relative to B as they had relative to A.

    Args:
        src_poses: poses, shape [..., 4, 4], in the common parent frame of A and B.

        frame_A: pose of A, shape [4, 4].
        frame_B: pose of B, shape [4, 4].
    """
    return frame_B @ pose_inv(frame_A) @ src_poses
