"""A network and a symmetry of a program's own."""

from __future__ import annotations

from typing import Any

import torch
from rsl_rl.models import MLPModel


class BoundedModel(MLPModel):
    """Network whose mean actions lie in [-1, 1]."""

    def forward(self, obs: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Compute bounded actions, shape [num_envs, num_actions]."""
        return super().forward(obs, *args, **kwargs).clamp(-1.0, 1.0)


def mirrored(env: Any, obs: Any, actions: torch.Tensor | None) -> tuple[Any, torch.Tensor | None]:
    """Add the observations and actions of the mirrored robot to a batch."""
    if obs is not None:
        obs = torch.cat([obs, obs.clone()], dim=0)
    if actions is not None:
        actions = torch.cat([actions, actions.flip(-1)], dim=0)
    return obs, actions
