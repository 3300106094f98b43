"""Actuators, with named targets of `delay_command`."""

from __future__ import annotations

import torch

from manyworlds.actuator import actuator
from manyworlds.signals import DelayBuffer


def delay_command(
    buffer: DelayBuffer,
    position_target: torch.Tensor,
    velocity_target: torch.Tensor,
    effort_target: torch.Tensor,
) -> tuple[torch.Tensor, ...]:
    """Delay the three targets, each [num_envs, num_targets], by one lag per world."""
    return actuator.delay_command(buffer, position_target, velocity_target, effort_target)
