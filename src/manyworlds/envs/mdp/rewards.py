"""Reward terms, each of shape [num_envs]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from manyworlds.managers.scene_entity_config import SceneEntityCfg
from manyworlds.utils.indices import as_index

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

_ROBOT = SceneEntityCfg("robot")


def is_alive(env: ManagerBasedRlEnv) -> torch.Tensor:
    """One while the episode has not failed."""
    return (~env.termination_manager.terminated).float()


def is_terminated(env: ManagerBasedRlEnv) -> torch.Tensor:
    """One when the episode ends for a reason other than time."""
    return env.termination_manager.terminated.float()


def joint_vel_l2(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg = _ROBOT) -> torch.Tensor:
    """Sum of squared joint velocities [rad^2/s^2 or m^2/s^2]."""
    data = env.scene[asset_cfg.name].data
    return data.joint_vel[:, as_index(asset_cfg.joint_ids)].square().sum(dim=1)


def action_rate_l2(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Sum of squared changes of the action since the step before."""
    manager = env.action_manager
    return (manager.action - manager.prev_action).square().sum(dim=1)
