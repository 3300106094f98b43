"""Observation terms, each [num_envs, ...]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from manyworlds.managers.scene_entity_config import SceneEntityCfg
from manyworlds.utils.indices import as_index

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

_ROBOT = SceneEntityCfg("robot")


def joint_pos_rel(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg = _ROBOT) -> torch.Tensor:
    """Joint positions relative to their defaults [rad or m]."""
    data = env.scene[asset_cfg.name].data
    ids = as_index(asset_cfg.joint_ids)
    return data.joint_pos[:, ids] - data.default_joint_pos[:, ids]


def joint_vel_rel(env: ManagerBasedRlEnv, asset_cfg: SceneEntityCfg = _ROBOT) -> torch.Tensor:
    """Joint velocities relative to their defaults [rad/s or m/s]."""
    data = env.scene[asset_cfg.name].data
    ids = as_index(asset_cfg.joint_ids)
    return data.joint_vel[:, ids] - data.default_joint_vel[:, ids]


def last_action(env: ManagerBasedRlEnv, action_name: str | None = None) -> torch.Tensor:
    """The last action as the policy gave it, of one term or of all."""
    if action_name is None:
        return env.action_manager.action
    return env.action_manager.get_term(action_name).raw_action
