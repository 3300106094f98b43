"""Metric terms, each of shape [num_envs]: logged, not rewarded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from manyworlds.envs.mdp.rewards import action_acc

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


def mean_action_acc(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Mean magnitude of the action's second difference, shape [num_envs].

    A measure of the smoothness of the policy: smaller is smoother.
    """
    return action_acc(env).abs().mean(dim=1)
