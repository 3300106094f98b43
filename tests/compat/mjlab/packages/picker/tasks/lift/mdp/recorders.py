"""Recorders of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from mjlab.managers.recorder_manager import RecorderTerm, RecorderTermCfg

if TYPE_CHECKING:
    from mjlab.envs import ManagerBasedRlEnv

__all__ = ["CubeHeights"]


class CubeHeights(RecorderTerm):
    """Greatest height of the cube in each world's last episode [m]."""

    def __init__(self, cfg: RecorderTermCfg, env: ManagerBasedRlEnv):
        super().__init__(cfg, env)
        self.cube = env.scene[cfg.params["object_name"]]
        self.highest = torch.zeros(self.num_envs, device=self.device)
        self.last = torch.zeros_like(self.highest)

    def record_post_step(self) -> None:
        """Keep the greatest height."""
        self.highest = torch.maximum(self.highest, self.cube.data.root_link_pos_w[:, 2])

    def record_pre_reset(self, env_ids: torch.Tensor) -> None:
        """Keep the episode's height and begin again."""
        self.last[env_ids] = self.highest[env_ids]
        self.highest[env_ids] = 0.0
