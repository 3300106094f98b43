"""Rotations: unit quaternions, scalar first (wxyz), and other representations.

A quaternion q and its negative represent the same rotation. Shapes are batched over any leading
dimensions, which broadcast. Formulas are from J. Solà, "Quaternion kinematics for the
error-state Kalman filter" (2017), unless another source is named.
"""

from __future__ import annotations

import math
from typing import Literal, TypeVar

import numpy as np
import torch

from manyworlds.utils.math.vectors import (
    atan2,
    cross,
    normalize,
    require_shape,
    skew_symmetric_matrix,
    wrap_to_pi,
)

ArrayOrTensor = TypeVar("ArrayOrTensor", "torch.Tensor", np.ndarray)


def quat_unique(q: torch.Tensor) -> torch.Tensor:
    """Return the quaternion with w >= 0 of each rotation, shape [..., 4]."""
    return torch.where(q[..., :1] < 0.0, -q, q)


def convert_quat(quat: ArrayOrTensor, to: Literal["xyzw", "wxyz"] = "xyzw") -> ArrayOrTensor:
    """Move the scalar of quaternions, shape [..., 4], from first to last, or back.

    Args:
        quat: quaternions in the opposite order of `to`.
        to: order of the result.

    Raises:
        ValueError: the last dimension is not 4, or the order is unknown.
    """
    if to not in ("xyzw", "wxyz"):
        raise ValueError(f"There is no quaternion order '{to}': use 'xyzw' or 'wxyz'.")
    if quat.shape[-1:] != (4,):
        raise ValueError(f"'quat' must have shape (..., 4), got {tuple(quat.shape)}.")
    shift = -1 if to == "xyzw" else 1
    if isinstance(quat, torch.Tensor):
        return quat.roll(shift, dims=-1)
    return np.roll(quat, shift, axis=-1)


def quat_conjugate(q: torch.Tensor) -> torch.Tensor:
    """Negate the vector part of quaternions, shape [..., 4]."""
    return torch.cat([q[..., :1], -q[..., 1:]], dim=-1)


def quat_inv(q: torch.Tensor, eps: float = 1e-9) -> torch.Tensor:
    """Invert quaternions of any norm, shape [..., 4]; squared norms are clamped to `eps`."""
    return quat_conjugate(q) / (q * q).sum(dim=-1, keepdim=True).clamp_min(eps)


def quat_mul(q1: torch.Tensor, q2: torch.Tensor) -> torch.Tensor:
    """Multiply quaternions, shape [..., 4]; the product applies rotation q2, then q1.

    Raises:
        ValueError: the shapes do not end in 4 or do not broadcast.
    """
    require_shape("q1", q1, (4,))
    require_shape("q2", q2, (4,))
    w1 = q1[..., :1]
    v1 = q1[..., 1:]
    w2 = q2[..., :1]
    v2 = q2[..., 1:]
    try:
        w = w1 * w2 - (v1 * v2).sum(dim=-1, keepdim=True)
    except RuntimeError:
        raise ValueError(
            f"Quaternions of shapes {tuple(q1.shape)} and {tuple(q2.shape)} cannot be multiplied: "
            "give shapes that broadcast."
        ) from None
    return torch.cat([w, w1 * v2 + w2 * v1 + cross(v1, v2)], dim=-1)


def quat_apply(quat: torch.Tensor, vec: torch.Tensor) -> torch.Tensor:
    """Rotate vectors, shape [..., 3], by unit quaternions, shape [..., 4]."""
    w = quat[..., :1]
    xyz = quat[..., 1:]
    t = 2.0 * cross(xyz, vec)
    return vec + w * t + cross(xyz, t)


def quat_apply_inverse(quat: torch.Tensor, vec: torch.Tensor) -> torch.Tensor:
    """Rotate vectors, shape [..., 3], by the inverse of unit quaternions, shape [..., 4]."""
    return quat_apply(quat_conjugate(quat), vec)


def yaw_quat(quat: torch.Tensor) -> torch.Tensor:
    """Return rotations about z, shape [..., 4], with the heading of the x axis under `quat`."""
    w, x, y, z = quat.unbind(-1)
    return axis_quat(atan2(2.0 * (w * z + x * y), w * w + x * x - y * y - z * z), "Z")


def quat_apply_yaw(quat: torch.Tensor, vec: torch.Tensor) -> torch.Tensor:
    """Rotate vectors, shape [..., 3], by the heading of `quat`, shape [..., 4]."""
    return quat_apply(yaw_quat(quat), vec)


def quat_from_angle_axis(angle: torch.Tensor, axis: torch.Tensor) -> torch.Tensor:
    """Return quaternions of rotations by angles [rad], shape [...], about axes, shape [..., 3].

    Axes may have any length; a zero axis is no rotation.
    """
    length = torch.linalg.vector_norm(axis, dim=-1, keepdim=True)
    turns = length > 0.0
    half = 0.5 * angle.unsqueeze(-1) * turns
    return torch.cat([half.cos(), half.sin() * axis / torch.where(turns, length, 1.0)], dim=-1)


def axis_angle_from_quat(quat: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """Return rotation vectors (axis times angle) [rad], with angles in [0, pi].

    Args:
        quat: quaternions, shape [..., 4].
        eps: |sin(angle / 2)| below which a series in it replaces the closed form.

    Returns:
        Logarithms of the rotations, shape [..., 3].
    """
    quat = quat_unique(quat)
    w = quat[..., :1]
    xyz = quat[..., 1:]
    square = (xyz * xyz).sum(dim=-1, keepdim=True)
    small = square <= eps**2
    sine = torch.where(small, 1.0, square).sqrt()
    w_small = w.clamp_min(0.5)
    series = 2.0 / w_small * (1.0 - square / (3.0 * w_small**2))  # 2 atan(x) / x of x = sine / w
    return torch.where(small, series, 2.0 * atan2(sine, w) / sine) * xyz


def quat_box_minus(q1: torch.Tensor, q2: torch.Tensor) -> torch.Tensor:
    """Return the shortest rotation vectors [rad], shape [..., 3], q2 to q1 in the fixed frame."""
    return axis_angle_from_quat(quat_mul(q1, quat_conjugate(q2)))


def quat_box_plus(q: torch.Tensor, delta: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """Apply rotation vectors in the fixed frame: the inverse of `quat_box_minus`.

    Args:
        q: quaternions, shape [..., 4].
        delta: rotation vectors [rad], shape [..., 3].
        eps: half angle [rad] below which a series replaces the closed form.

    Returns:
        Quaternions, shape [..., 4].
    """
    half = 0.5 * torch.linalg.vector_norm(delta, dim=-1, keepdim=True)
    safe = half.clamp_min(eps)
    scale = 0.5 * torch.where(half < eps, 1.0 - half**2 / 6.0, safe.sin() / safe)
    return quat_mul(torch.cat([half.cos(), scale * delta], dim=-1), q)


def quat_error_magnitude(q1: torch.Tensor, q2: torch.Tensor) -> torch.Tensor:
    """Return the angles [rad] in [0, pi], shape [...], between rotations, shape [..., 4]."""
    difference = quat_mul(q1, quat_conjugate(q2))
    sine = torch.linalg.vector_norm(difference[..., 1:], dim=-1)
    return 2.0 * atan2(sine, difference[..., 0].abs())


def axis_quat(angle: torch.Tensor, axis: str) -> torch.Tensor:
    """Return rotations, shape [..., 4], by angles [rad], shape [...], about axis X, Y or Z."""
    half = 0.5 * angle
    parts = [half.cos(), *[torch.zeros_like(half)] * 3]
    parts["WXYZ".index(axis)] = half.sin()
    return torch.stack(parts, dim=-1)


def quat_from_euler_xyz(roll: torch.Tensor, pitch: torch.Tensor, yaw: torch.Tensor) -> torch.Tensor:
    """Return rotations, shape [..., 4], about the fixed axes x, then y, then z.

    Args:
        roll: angles about x [rad], shape [...].
        pitch: angles about y [rad], shape [...].
        yaw: angles about z [rad], shape [...].
    """
    return quat_mul(axis_quat(yaw, "Z"), quat_mul(axis_quat(pitch, "Y"), axis_quat(roll, "X")))


def euler_xyz_from_quat(
    quat: torch.Tensor, wrap_to_2pi: bool = False
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return roll, pitch and yaw [rad], shape [...] each: the inverse of `quat_from_euler_xyz`.

    At a pitch of +-pi/2, only the difference or the sum of roll and yaw is determined; the result
    is still the same rotation. Source: E. Bernardes and S. Viollet, "Quaternion to Euler angles
    conversion: a direct, general and computationally efficient method" (2022).

    Args:
        quat: quaternions, shape [..., 4].
        wrap_to_2pi: return angles in [0, 2 pi] instead of [-pi, pi].
    """
    w, x, y, z = quat.unbind(-1)
    half_sum = atan2(x + z, w - y)
    half_difference = atan2(x - z, w + y)
    pitch = 2.0 * atan2(torch.hypot(x - z, w + y), torch.hypot(x + z, w - y)) - 0.5 * math.pi
    angles = wrap_to_pi(half_sum + half_difference), pitch, wrap_to_pi(half_sum - half_difference)
    if not wrap_to_2pi:
        return angles
    roll, pitch, yaw = (torch.where(a < 0.0, a + 2.0 * math.pi, a) for a in angles)
    return roll, pitch, yaw


def matrix_from_quat(quaternions: torch.Tensor) -> torch.Tensor:
    """Return rotation matrices, shape [..., 3, 3], of quaternions of any norm, shape [..., 4]."""
    w = quaternions[..., :1, None]
    xyz = quaternions[..., 1:]
    square = (quaternions * quaternions).sum(dim=-1)[..., None, None]
    scale = 2.0 / square.clamp_min(torch.finfo(square.dtype).tiny)
    outer = xyz.unsqueeze(-1) * xyz.unsqueeze(-2)
    eye = torch.eye(3, dtype=outer.dtype, device=outer.device)
    trace = (xyz * xyz).sum(dim=-1)[..., None, None]
    return eye + scale * (outer - trace * eye + w * skew_symmetric_matrix(xyz))


def quat_from_matrix(matrix: torch.Tensor) -> torch.Tensor:
    """Return quaternions with w >= 0, shape [..., 4], of rotation matrices, shape [..., 3, 3].

    Division by the largest component makes every rotation exact to rounding. Source:
    S. W. Shepperd, "Quaternion from rotation matrix" (1978).

    Raises:
        ValueError: the last dimensions are not (3, 3).
    """
    require_shape("matrix", matrix, (3, 3))
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = (row.unbind(-1) for row in matrix.unbind(-2))
    # Four times the outer product of the quaternion with itself: each row is a multiple of it.
    rows = [
        [1.0 + xx + yy + zz, zy - yz, xz - zx, yx - xy],
        [zy - yz, 1.0 + xx - yy - zz, xy + yx, xz + zx],
        [xz - zx, xy + yx, 1.0 - xx + yy - zz, yz + zy],
        [yx - xy, xz + zx, yz + zy, 1.0 - xx - yy + zz],
    ]
    outer = torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2)
    largest = outer.diagonal(dim1=-2, dim2=-1).argmax(dim=-1)[..., None, None]
    return quat_unique(normalize(torch.take_along_dim(outer, largest, dim=-2).squeeze(-2)))


def matrix_from_euler(euler_angles: torch.Tensor, convention: str) -> torch.Tensor:
    """Return rotation matrices, shape [..., 3, 3], of rotations about moving axes, in order.

    Args:
        euler_angles: angles [rad], shape [..., 3].
        convention: three of the letters X, Y and Z, such as 'XYZ': R = R_X(a0) R_Y(a1) R_Z(a2).

    Raises:
        ValueError: the last dimension is not 3, or the convention is unknown.
    """
    require_shape("euler_angles", euler_angles, (3,))
    if len(convention) != 3 or not set(convention) <= set("XYZ"):
        raise ValueError(
            f"There is no Euler convention '{convention}': use three of the letters X, Y and Z."
        )
    if convention[1] in (convention[0], convention[2]):
        raise ValueError(
            f"The Euler convention '{convention}' repeats an axis consecutively, which "
            "cannot represent all rotations: choose another middle axis."
        )
    first, second, third = (
        axis_quat(angle, axis)
        for angle, axis in zip(euler_angles.unbind(-1), convention, strict=True)
    )
    return matrix_from_quat(quat_mul(quat_mul(first, second), third))
