"""Curricula of tracking tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

import torch

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


class DisturbanceStage(TypedDict):
    """Size of initial velocities from a step on."""

    step: int
    """First control step of the stage (`common_step_counter`)."""
    scale: float
    """Factor of the velocities' bounds."""


def initial_velocities(
    env: ManagerBasedRlEnv,
    env_ids: torch.Tensor,
    command_name: str,
    velocity_range: Mapping[str, tuple[float, float]],
    stages: Sequence[DisturbanceStage],
) -> dict[str, torch.Tensor]:
    """Scale the noise on initial velocities of a motion command to that of the current step.

    Args:
        env: the environment.
        env_ids: unused, because a command is the same in all worlds.
        command_name: name of a `MotionCommand`.
        velocity_range: bounds at a scale of 1, as `MotionCommandCfg.velocity_range`.
        stages: scales by step, in increasing order of steps; the first applies before its step,
            too.

    Returns:
        The scale, shape [].
    """
    reached = [stage for stage in stages if stage["step"] <= env.common_step_counter]
    scale = (reached or stages)[-1 if reached else 0]["scale"]
    env.command_manager.get_term_cfg(command_name).velocity_range = {
        name: (scale * low, scale * high) for name, (low, high) in velocity_range.items()
    }
    return {"scale": torch.tensor(scale)}
