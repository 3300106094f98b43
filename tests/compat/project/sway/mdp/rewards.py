"""Rewards of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from mjlab.entity import Entity
from mjlab.managers.scene_entity_config import SceneEntityCfg
from mjlab.utils.lab_api.math import wrap_to_pi

if TYPE_CHECKING:
    from mjlab.envs import ManagerBasedRlEnv
    from mjlab.managers.reward_manager import RewardTermCfg

_DEFAULT_ASSET_CFG = SceneEntityCfg("robot")


def upright_exp(
    env: ManagerBasedRlEnv, std: float, asset_cfg: SceneEntityCfg = _DEFAULT_ASSET_CFG
) -> torch.Tensor:
    """Reward a pole that stands."""
    asset: Entity = env.scene[asset_cfg.name]
    angle = wrap_to_pi(asset.data.joint_pos[:, asset_cfg.joint_ids])
    return torch.exp(-torch.sum(torch.square(angle), dim=1) / std**2)


class smooth_action:  # noqa: N801
    """Penalise actions that are far from a running mean."""

    def __init__(self, cfg: RewardTermCfg, env: ManagerBasedRlEnv):
        self.mean = torch.zeros(env.num_envs, env.action_manager.total_action_dim)
        self.mean = self.mean.to(env.device)
        self.rate = cfg.params["rate"]

    def __call__(self, env: ManagerBasedRlEnv, rate: float) -> torch.Tensor:
        """Compute the penalty."""
        del rate
        self.mean += self.rate * (env.action_manager.action - self.mean)
        return torch.sum(torch.square(env.action_manager.action - self.mean), dim=1)

    def reset(self, env_ids: torch.Tensor | slice | None = None) -> None:
        """Forget the actions of the episodes that ended."""
        self.mean[slice(None) if env_ids is None else env_ids] = 0.0
