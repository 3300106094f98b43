"""Curriculum of the initial noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import torch

from manyworlds.tasks.tracking.mdp.commands import Ranges
from manyworlds.tasks.tracking.mdp.observations import motion_command
from manyworlds.validation.worlds import EnvIds, takes_worlds

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


class StartVelocityStage(TypedDict):
    """Initial noise on the root's velocity from a step on."""

    step: int
    """First control step of the stage (`common_step_counter`)."""
    velocity_range: Ranges
    """Bounds, see `MotionCommandCfg.velocity_range`."""


@takes_worlds
def start_velocities(
    env: ManagerBasedRlEnv,
    env_ids: EnvIds,
    command_name: str,
    stages: list[StartVelocityStage],
) -> dict[str, torch.Tensor]:
    """Set the initial noise on the root's velocity to that of the current step.

    Args:
        env: the environment.
        env_ids: unused, because the noise has the same bounds in all worlds.
        command_name: name of the motion command.
        stages: bounds by step, in increasing order of steps.

    Returns:
        Upper bounds by name [m/s, rad/s], each of shape [].
    """
    cfg = motion_command(env, command_name).cfg
    for stage in stages:
        if stage["step"] <= env.common_step_counter:
            cfg.velocity_range = stage["velocity_range"]
    return {name: torch.tensor(float(high)) for name, (_, high) in cfg.velocity_range.items()}
