"""Terms whose values tell which world and column they belong to."""

from __future__ import annotations

import torch

from manyworlds.managers import ManagerTermBase


def world_number(env) -> torch.Tensor:
    """Return 0, 1, 2, ... so that a mixed-up index shows."""
    return torch.arange(env.num_envs, dtype=torch.float32)


def world_rows(env, width: int = 2) -> torch.Tensor:
    """Return rows of 10 * world + column."""
    return 10.0 * world_number(env)[:, None] + torch.arange(float(width))


class Counter(ManagerTermBase):
    """Counts its calls per world."""

    state_attributes = ("count",)

    def __init__(self, cfg, env) -> None:
        super().__init__(env)
        self.count = torch.zeros(env.num_envs)

    def reset(self, env_ids=None) -> None:
        """Count the worlds named from zero."""
        self.count[slice(None) if env_ids is None else env_ids] = 0.0

    def __call__(self, env, step: float = 1.0) -> torch.Tensor:
        """Count one more."""
        self.count += step
        return self.count.clone()
