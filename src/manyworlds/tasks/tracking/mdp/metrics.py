"""Metrics of tracking errors, each of shape [num_envs]."""

from __future__ import annotations

import torch

from manyworlds.tasks.tracking.mdp.commands import MotionCommand
from manyworlds.utils.math import quat_error_magnitude


def compute_mpkpe(command: MotionCommand) -> torch.Tensor:
    """Mean per-keypoint position error [m], shape [num_envs].

    The mean distance between the tracked bodies of robot and motion.
    """
    error = command.body_pos_w - command.robot_body_pos_w
    return torch.linalg.vector_norm(error, dim=-1).mean(dim=-1)


def compute_root_relative_mpkpe(command: MotionCommand) -> torch.Tensor:
    """Mean per-keypoint error of positions relative to the anchor [m], shape [num_envs]."""
    asked = command.body_pos_w - command.anchor_pos_w.unsqueeze(1)
    actual = command.robot_body_pos_w - command.robot_anchor_pos_w.unsqueeze(1)
    return torch.linalg.vector_norm(asked - actual, dim=-1).mean(dim=-1)


def compute_joint_velocity_error(command: MotionCommand) -> torch.Tensor:
    """Norm of the joint velocity error [rad/s], shape [num_envs]."""
    return torch.linalg.vector_norm(command.joint_vel - command.robot_joint_vel, dim=-1)


def compute_ee_position_error(
    command: MotionCommand, ee_body_names: tuple[str, ...]
) -> torch.Tensor:
    """Mean distance of the given bodies from the aligned motion [m], shape [num_envs].

    Raises:
        ValueError: a body is not tracked.
    """
    ids = command.body_index(ee_body_names)
    error = command.body_pos_relative_w[:, ids] - command.robot_body_pos_w[:, ids]
    return torch.linalg.vector_norm(error, dim=-1).mean(dim=-1)


def compute_ee_orientation_error(
    command: MotionCommand, ee_body_names: tuple[str, ...]
) -> torch.Tensor:
    """Mean angle between the given bodies and the aligned motion [rad], shape [num_envs].

    Raises:
        ValueError: a body is not tracked.
    """
    ids = command.body_index(ee_body_names)
    asked = command.body_quat_relative_w[:, ids]
    actual = command.robot_body_quat_w[:, ids]
    return quat_error_magnitude(asked, actual).mean(dim=-1)
