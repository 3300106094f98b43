"""Actuators, whose `delay_command` takes all three targets here."""

from __future__ import annotations

import torch

from manyworlds.actuator import actuator as ours
from manyworlds.signals import DelayBuffer


def delay_command(
    buffer: DelayBuffer,
    position_target: torch.Tensor,
    velocity_target: torch.Tensor,
    effort_target: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Delay three targets by one lag per world.

    Args:
        buffer: the earlier targets, to which these are appended.
        position_target: positions [rad or m], shape [num_envs, num_targets].
        velocity_target: velocities [rad/s or m/s], shape [num_envs, num_targets].
        effort_target: efforts [N m or N], shape [num_envs, num_targets].

    Returns:
        The delayed targets, in the same order and shapes.
    """
    late = ours.delay_command(buffer, position_target, velocity_target, effort_target)
    return late[0], late[1], late[2]
