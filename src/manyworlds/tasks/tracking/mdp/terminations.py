"""Terminations by the distance from the motion, each booleans of shape [num_envs]."""

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
    """Mask of anchors over `threshold` [m] from the motion's anchor in the world, [num_envs]."""
    command = motion_command(env, command_name)
    error = command.anchor_pos_w - command.robot_anchor_pos_w
    return torch.linalg.vector_norm(error, dim=1) > threshold


def bad_anchor_pos_z_only(
    env: ManagerBasedRlEnv, command_name: str, threshold: float
) -> torch.Tensor:
    """Mask of anchors with a height error above `threshold` [m], shape [num_envs]."""
    command = motion_command(env, command_name)
    return (command.anchor_pos_w[:, 2] - command.robot_anchor_pos_w[:, 2]).abs() > threshold


def bad_anchor_ori(
    env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg, command_name: str, threshold: float
) -> torch.Tensor:
    """Mask of anchors whose inclination differs from the motion's, shape [num_envs].

    Args:
        env: the environment.
        asset_cfg: the robot.
        command_name: name of the motion command.
        threshold: maximum difference of the z components of gravity's direction in the anchor
            frames: 0 for equal inclinations, 2 if one is upside down.
    """
    command = motion_command(env, command_name)
    gravity = env.scene.entity(asset_cfg.name).data.gravity_vec_w
    asked = quat_apply_inverse(command.anchor_quat_w, gravity)
    actual = quat_apply_inverse(command.robot_anchor_quat_w, gravity)
    return (asked[:, 2] - actual[:, 2]).abs() > threshold


def bad_motion_body_pos(
    env: ManagerBasedRlEnv, command_name: str, threshold: float, body_names: Names = None
) -> torch.Tensor:
    """Mask of robots with a tracked body over `threshold` [m] from the aligned motion.

    Shape [num_envs].
    """
    error = _body_error(env, command_name, body_names)
    return (torch.linalg.vector_norm(error, dim=2) > threshold).any(dim=1)


def bad_motion_body_pos_z_only(
    env: ManagerBasedRlEnv, command_name: str, threshold: float, body_names: Names = None
) -> torch.Tensor:
    """Mask of robots with a tracked body's height error above `threshold` [m], [num_envs]."""
    error = _body_error(env, command_name, body_names)
    return (error[..., 2].abs() > threshold).any(dim=1)


def _body_error(env: ManagerBasedRlEnv, command_name: str, body_names: Names) -> torch.Tensor:
    command = motion_command(env, command_name)
    ids = command.body_index(body_names)
    return (command.body_pos_relative_w - command.robot_body_pos_w)[:, ids]
