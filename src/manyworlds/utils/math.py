"""Rotations as unit quaternions, scalar first (wxyz)."""

from __future__ import annotations

import torch


def quat_apply(quat: torch.Tensor, vec: torch.Tensor) -> torch.Tensor:
    """Rotate vectors, shape [..., 3], by unit quaternions, shape [..., 4]."""
    w, xyz = quat[..., :1], quat[..., 1:]
    t = 2.0 * torch.linalg.cross(xyz, vec)
    return vec + w * t + torch.linalg.cross(xyz, t)


def quat_apply_inverse(quat: torch.Tensor, vec: torch.Tensor) -> torch.Tensor:
    """Rotate vectors, shape [..., 3], by the inverse of unit quaternions, shape [..., 4]."""
    return quat_apply(torch.cat([quat[..., :1], -quat[..., 1:]], dim=-1), vec)
