"""Terminations of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch

from .commands import PacedMotionCommand

if TYPE_CHECKING:
    from mjlab.envs import ManagerBasedRlEnv

__all__ = ["motion_over"]


def motion_over(env: ManagerBasedRlEnv, command_name: str) -> torch.Tensor:
    """End episodes at the last frame of the motion."""
    command = cast(PacedMotionCommand, env.command_manager.get_term(command_name))
    return command.time_steps >= command.motion.time_step_total - 1
