"""Rewards of manipulation tasks, each of shape [num_envs].

Kernels are `exp(-distance^2 / std^2)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from manyworlds.managers import SceneEntityCfg
from manyworlds.tasks.manipulation.mdp.commands import LiftingCommand, MultiCubeLiftingCommand
from manyworlds.tasks.manipulation.mdp.observations import lifting_command, site_position
from manyworlds.utils.math import dot

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

_ROBOT = SceneEntityCfg("robot")


def staged_position_reward(
    env: ManagerBasedRlEnv,
    command_name: str,
    object_name: str,
    reaching_std: float,
    bringing_std: float,
    asset_cfg: SceneEntityCfg = _ROBOT,
) -> torch.Tensor:
    """Reward for reaching an object and bringing it to its target, shape [num_envs].

    Equal to r (1 + b), where r is the kernel of the distance from site to object and b the kernel
    of the distance from object to target.

    Args:
        env: the environment.
        command_name: name of a `LiftingCommand`.
        object_name: the object.
        reaching_std: standard deviation of r [m].
        bringing_std: standard deviation of b [m].
        asset_cfg: the robot and its site between the fingertips.

    Raises:
        TypeError: the command is not a `LiftingCommand`.
    """
    goal = lifting_command(env, command_name, LiftingCommand).target_pos
    position = env.scene.entity(object_name).data.root_link_pos_w
    return _staged(site_position(env, asset_cfg), position, goal, reaching_std, bringing_std)


def bring_object_reward(
    env: ManagerBasedRlEnv, command_name: str, object_name: str, std: float
) -> torch.Tensor:
    """Kernel of the distance from an object to its target, shape [num_envs].

    Its standard deviation is `std` [m].

    Raises:
        TypeError: the command is not a `LiftingCommand`.
    """
    goal = lifting_command(env, command_name, LiftingCommand).target_pos
    return _kernel(env.scene.entity(object_name).data.root_link_pos_w - goal, std)


def multi_cube_staged_position_reward(
    env: ManagerBasedRlEnv,
    command_name: str,
    reaching_std: float,
    bringing_std: float,
    asset_cfg: SceneEntityCfg = _ROBOT,
) -> torch.Tensor:
    """`staged_position_reward` for the object that the command selects, shape [num_envs].

    Raises:
        TypeError: the command is not a `MultiCubeLiftingCommand`.
    """
    command = lifting_command(env, command_name, MultiCubeLiftingCommand)
    hand = site_position(env, asset_cfg)
    position = command.target_object_pos
    return _staged(hand, position, command.target_pos, reaching_std, bringing_std)


def multi_cube_bring_object_reward(
    env: ManagerBasedRlEnv, command_name: str, std: float
) -> torch.Tensor:
    """`bring_object_reward` for the object that the command selects, shape [num_envs].

    Raises:
        TypeError: the command is not a `MultiCubeLiftingCommand`.
    """
    command = lifting_command(env, command_name, MultiCubeLiftingCommand)
    return _kernel(command.target_object_pos - command.target_pos, std)


def joint_velocity_hinge_penalty(
    env: ManagerBasedRlEnv, max_vel: float, asset_cfg: SceneEntityCfg = _ROBOT
) -> torch.Tensor:
    """Sum of squared excesses of joint speeds over `max_vel` [rad/s or m/s], shape [num_envs]."""
    velocity = env.scene.entity(asset_cfg.name).data.joint_vel[:, asset_cfg.index("joint")]
    return (velocity.abs() - max_vel).clamp_(min=0.0).square().sum(dim=1)


def _staged(
    hand: torch.Tensor,
    position: torch.Tensor,
    goal: torch.Tensor,
    reaching_std: float,
    bringing_std: float,
) -> torch.Tensor:
    reaching = _kernel(position - hand, reaching_std)
    return reaching * (1.0 + _kernel(goal - position, bringing_std))


def _kernel(error: torch.Tensor, std: float) -> torch.Tensor:
    return torch.exp(dot(error, error) / -(std**2))
