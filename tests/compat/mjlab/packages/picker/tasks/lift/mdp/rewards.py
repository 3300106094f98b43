"""Rewards of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from mjlab.managers.manager_base import ManagerTermBase
from mjlab.managers.scene_entity_config import SceneEntityCfg

if TYPE_CHECKING:
    from mjlab.entity import Entity
    from mjlab.envs import ManagerBasedRlEnv
    from mjlab.managers.reward_manager import RewardTermCfg

__all__ = ["approach_progress"]


class approach_progress(ManagerTermBase):  # noqa: N801
    """Reward each new least distance between the grasp and the cube in an episode."""

    def __init__(self, cfg: RewardTermCfg, env: ManagerBasedRlEnv):
        super().__init__(env)
        self.cube: Entity = env.scene[cfg.params["object_name"]]
        self.least = torch.full((self.num_envs,), torch.inf, device=self.device)

    def __call__(
        self, env: ManagerBasedRlEnv, object_name: str, asset_cfg: SceneEntityCfg
    ) -> torch.Tensor:
        """Compute by how much the least distance shrank [m]."""
        del object_name
        arm: Entity = env.scene[asset_cfg.name]
        grasp = arm.data.site_pos_w[:, asset_cfg.site_ids].squeeze(1)
        distance = torch.norm(grasp - self.cube.data.root_link_pos_w, dim=-1)
        gain = torch.where(self.least.isinf(), 0.0, (self.least - distance).clamp(min=0.0))
        self.least = torch.minimum(self.least, distance)
        return gain / env.step_dt

    def reset(self, env_ids: torch.Tensor | slice | None = None) -> dict[str, float]:
        """Begin again for the episodes that ended."""
        self.least[slice(None) if env_ids is None else env_ids] = torch.inf
        return {}
