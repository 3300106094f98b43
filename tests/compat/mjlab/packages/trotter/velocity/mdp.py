"""Terms of our own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from mjlab.envs.mdp.actions import JointPositionAction, JointPositionActionCfg

if TYPE_CHECKING:
    from mjlab.envs import ManagerBasedRlEnv
    from mjlab.managers.reward_manager import RewardTermCfg


class RateLimitedAction(JointPositionAction):
    """Position targets that change by a bounded step; the last targets are kept, not copied."""

    cfg: RateLimitedActionCfg

    def __init__(self, cfg: RateLimitedActionCfg, env: ManagerBasedRlEnv):
        super().__init__(cfg=cfg, env=env)
        self._last: torch.Tensor | None = None

    def process_actions(self, actions: torch.Tensor) -> None:
        """Bound the change of the targets."""
        super().process_actions(actions)
        if self._last is not None:
            step = self._processed_actions - self._last
            step = step.clamp(-self.cfg.max_step, self.cfg.max_step)
            self._processed_actions = self._last + step
        self._last = self._processed_actions


@dataclass(kw_only=True)
class RateLimitedActionCfg(JointPositionActionCfg):
    """Settings of bounded position targets."""

    max_step: float = 0.1

    def build(self, env: ManagerBasedRlEnv) -> RateLimitedAction:
        """Build the term."""
        return RateLimitedAction(self, env)


class joint_jerkiness:  # noqa: N801
    """Mean change of joint velocities between two control steps, without copies of them."""

    def __init__(self, cfg: RewardTermCfg, env: ManagerBasedRlEnv):
        assert "asset_cfg" not in cfg.params
        self.previous = env.scene["robot"].data.joint_vel
        self.num_calls = 0
        # Before the first reset there is nothing to measure.
        assert env.common_step_counter == 0

    def __call__(self, env: ManagerBasedRlEnv) -> torch.Tensor:
        """Compare with the last control step."""
        self.num_calls += 1
        velocity = env.scene["robot"].data.joint_vel
        change = (velocity - self.previous).abs().mean(dim=1)
        self.previous = velocity
        return change


def trunk_of_feet(env: ManagerBasedRlEnv, geom_ids: list[int]) -> torch.Tensor:
    """Return the roots of the bodies that geoms belong to, one for all worlds."""
    model = env.sim.model
    ids = env.scene["robot"].indexing.geom_ids[geom_ids]
    return model.body_rootid[model.geom_bodyid[ids].long()]
