"""Rewards for tracking, `exp(-error^2 / std^2)`, each of shape [num_envs].

Errors of several bodies are mean squares. "Relative" errors are those to the motion aligned with
the robot, moved horizontally and rotated about z; "global" errors are those in the world frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from manyworlds.envs.mdp.rewards import self_collision_cost
from manyworlds.tasks.tracking.mdp.observations import motion_command
from manyworlds.utils.math import dot, quat_error_magnitude

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

__all__ = [
    "motion_global_anchor_orientation_error_exp",
    "motion_global_anchor_position_error_exp",
    "motion_global_body_angular_velocity_error_exp",
    "motion_global_body_linear_velocity_error_exp",
    "motion_relative_body_orientation_error_exp",
    "motion_relative_body_position_error_exp",
    "self_collision_cost",
]

Names = tuple[str, ...] | None


def motion_global_anchor_position_error_exp(
    env: ManagerBasedRlEnv, command_name: str, std: float
) -> torch.Tensor:
    """Kernel of the anchor's position error, `std` [m], shape [num_envs]."""
    command = motion_command(env, command_name)
    return _kernel(_squared(command.anchor_pos_w, command.robot_anchor_pos_w), std)


def motion_global_anchor_orientation_error_exp(
    env: ManagerBasedRlEnv, command_name: str, std: float
) -> torch.Tensor:
    """Kernel of the anchor's orientation error, `std` [rad], shape [num_envs]."""
    command = motion_command(env, command_name)
    error = quat_error_magnitude(command.anchor_quat_w, command.robot_anchor_quat_w)
    return _kernel(error.square(), std)


def motion_relative_body_position_error_exp(
    env: ManagerBasedRlEnv, command_name: str, std: float, body_names: Names = None
) -> torch.Tensor:
    """Kernel of position errors of the given (or all) bodies, `std` [m], shape [num_envs]."""
    command = motion_command(env, command_name)
    ids = command.body_index(body_names)
    asked = command.body_pos_relative_w[:, ids]
    actual = command.robot_body_pos_w[:, ids]
    return _kernel(_squared(asked, actual).mean(dim=1), std)


def motion_relative_body_orientation_error_exp(
    env: ManagerBasedRlEnv, command_name: str, std: float, body_names: Names = None
) -> torch.Tensor:
    """Kernel of orientation errors of the given (or all) bodies, `std` [rad], shape [num_envs]."""
    command = motion_command(env, command_name)
    ids = command.body_index(body_names)
    asked = command.body_quat_relative_w[:, ids]
    actual = command.robot_body_quat_w[:, ids]
    return _kernel(quat_error_magnitude(asked, actual).square().mean(dim=1), std)


def motion_global_body_linear_velocity_error_exp(
    env: ManagerBasedRlEnv, command_name: str, std: float, body_names: Names = None
) -> torch.Tensor:
    """Kernel of the bodies' linear velocity errors, `std` [m/s], shape [num_envs]."""
    command = motion_command(env, command_name)
    ids = command.body_index(body_names)
    asked = command.body_lin_vel_w[:, ids]
    actual = command.robot_body_lin_vel_w[:, ids]
    return _kernel(_squared(asked, actual).mean(dim=1), std)


def motion_global_body_angular_velocity_error_exp(
    env: ManagerBasedRlEnv, command_name: str, std: float, body_names: Names = None
) -> torch.Tensor:
    """Kernel of the bodies' angular velocity errors, `std` [rad/s], shape [num_envs]."""
    command = motion_command(env, command_name)
    ids = command.body_index(body_names)
    asked = command.body_ang_vel_w[:, ids]
    actual = command.robot_body_ang_vel_w[:, ids]
    return _kernel(_squared(asked, actual).mean(dim=1), std)


def _squared(asked: torch.Tensor, actual: torch.Tensor) -> torch.Tensor:
    difference = asked - actual
    return dot(difference, difference)


def _kernel(squared_error: torch.Tensor, std: float) -> torch.Tensor:
    return torch.exp(squared_error * (-1.0 / std**2))
