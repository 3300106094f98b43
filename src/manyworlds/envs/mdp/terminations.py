"""Termination terms, each booleans of shape [num_envs]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from manyworlds.sim import FATAL

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


def time_out(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Whether the episode has reached its length."""
    return env.episode_length_buf >= env.max_episode_length


def nan_detection(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Whether the world diverged: a position or velocity is not finite."""
    data = env.sim.data
    # A sum is finite only if every element is (or cancels an infinity, which gives NaN).
    return ~torch.isfinite(data.qpos.sum(dim=1) + data.qvel.sum(dim=1))


def bad_world(env: ManagerBasedRlEnv, bits: int = FATAL) -> torch.Tensor:
    """Whether the world's results cannot be trusted: divergence, an engine error, lost contacts.

    Args:
        env: the environment.
        bits: bits of `WorldStatus` that end the episode.
    """
    return (env.sim.status & int(bits)) != 0
