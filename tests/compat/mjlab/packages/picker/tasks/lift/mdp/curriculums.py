"""Curricula of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from mjlab.tasks.manipulation.mdp import LiftingCommandCfg

if TYPE_CHECKING:
    from mjlab.envs import ManagerBasedRlEnv

__all__ = ["raise_goal"]


def raise_goal(
    env: ManagerBasedRlEnv, env_ids: torch.Tensor, command_name: str, rate: float, highest: float
) -> dict[str, float]:
    """Raise the highest goal with the number of steps."""
    del env_ids
    cfg = env.command_manager.get_term(command_name).cfg
    assert isinstance(cfg, LiftingCommandCfg)
    low, _ = cfg.target_position_range.z
    high = min(highest, low + 0.05 + rate * env.common_step_counter)
    cfg.target_position_range.z = (low, high)
    return {"z_max": high}
