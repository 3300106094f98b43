"""Inverse kinematics with mjlab's meaning of weights, bounds and positions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from manyworlds.envs.mdp.actions import differential_ik as ours

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


@dataclass(kw_only=True)
class DifferentialIKActionCfg(ours.DifferentialIKActionCfg):
    """Configuration of an action that moves joints so that a frame reaches a pose.

    Residuals are multiplied by the weights, so that the squares of the weights count. `max_dq`
    bounds each joint by itself. Positions of the absolute form are in the frame of the simulation,
    in which each world has an origin of its own.
    """

    def build(self, env: ManagerBasedRlEnv) -> DifferentialIKAction:
        """Build the term."""
        return DifferentialIKAction(self, env)


class DifferentialIKAction(ours.DifferentialIKAction):
    """Action that minimizes the squares of weighted errors before every physics step."""

    def __init__(self, cfg: DifferentialIKActionCfg, env: ManagerBasedRlEnv) -> None:
        weights = ("position_weight", "orientation_weight", "joint_limit_weight", "posture_weight")
        squares = {name: getattr(cfg, name) ** 2 for name in weights}
        super().__init__(replace(cfg, **squares), env)

    def process_actions(self, actions: torch.Tensor) -> None:
        """Compute the target pose from actions of shape [num_envs, action_dim]."""
        super().process_actions(actions)
        if not self.cfg.use_relative_mode:
            self._target_pos.copy_(actions[:, :3])

    def _bounded(self, dq: torch.Tensor) -> torch.Tensor:
        return dq.clamp(-self.cfg.max_dq, self.cfg.max_dq)
