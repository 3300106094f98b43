"""When the robot is too far from the motion, each booleans of shape [num_envs]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from manyworlds.managers import SceneEntityCfg
from manyworlds.tasks.tracking.mdp.observations import motion_command
from manyworlds.utils.math import quat_apply_inverse

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

Names = tuple[str, ...] | None


def bad_anchor_pos(env: ManagerBasedRlEnv, command_name: str, threshold: float) -> torch.Tensor:
    """Whether the anchor is more than `threshold` [m] from where it should be in the world."""
    command = motion_command(env, command_name)
    error = command.anchor_pos_w - command.robot_anchor_pos_w
    return torch.linalg.vector_norm(error, dim=1) > threshold


def bad_anchor_pos_z_only(
    env: ManagerBasedRlEnv, command_name: str, threshold: float
) -> torch.Tensor:
    """Whether the anchor is more than `threshold` [m] too high or too low."""
    command = motion_command(env, command_name)
    return (command.anchor_pos_w[:, 2] - command.robot_anchor_pos_w[:, 2]).abs() > threshold


def bad_anchor_ori(
    env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg, command_name: str, threshold: float
) -> torch.Tensor:
    """Whether the anchor leans otherwise than it should.

    Args:
        env: the environment.
        asset_cfg: the robot.
        command_name: the command.
        threshold: largest difference of the vertical parts of gravity's direction, seen from the
            anchor: 0 for equal inclinations, 2 for one upside down.
    """
    command = motion_command(env, command_name)
    gravity = env.scene[asset_cfg.name].data.gravity_vec_w
    asked = quat_apply_inverse(command.anchor_quat_w, gravity)
    actual = quat_apply_inverse(command.robot_anchor_quat_w, gravity)
    return (asked[:, 2] - actual[:, 2]).abs() > threshold


def bad_motion_body_pos(
    env: ManagerBasedRlEnv, command_name: str, threshold: float, body_names: Names = None
) -> torch.Tensor:
    """Whether a tracked body is more than `threshold` [m] from the motion brought to the robot."""
    error = _body_error(env, command_name, body_names)
    return (torch.linalg.vector_norm(error, dim=2) > threshold).any(dim=1)


def bad_motion_body_pos_z_only(
    env: ManagerBasedRlEnv, command_name: str, threshold: float, body_names: Names = None
) -> torch.Tensor:
    """Whether a tracked body is more than `threshold` [m] too high or too low."""
    error = _body_error(env, command_name, body_names)
    return (error[..., 2].abs() > threshold).any(dim=1)


def _body_error(env: ManagerBasedRlEnv, command_name: str, body_names: Names) -> torch.Tensor:
    command = motion_command(env, command_name)
    ids = command.body_index(body_names)
    return (command.body_pos_relative_w - command.robot_body_pos_w)[:, ids]
