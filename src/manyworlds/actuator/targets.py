"""Targets and state of the elements that actuators drive."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch

CommandField = Literal["position", "velocity", "effort"]
"""Kind of a target."""
COMMAND_FIELDS: tuple[CommandField, ...] = ("position", "velocity", "effort")


class DriveTargets(NamedTuple):
    """Targets of all joints, tendons or sites of an entity, each [num_envs, num_elements].

    Writing to the tensors in place sets the targets. Positions and velocities of sites, which have
    neither, are zero and cannot be written.
    """

    position: torch.Tensor
    """Desired positions [rad or m]."""
    velocity: torch.Tensor
    """Desired velocities [rad/s or m/s]."""
    effort: torch.Tensor
    """Desired efforts, before a gear [N m or N]."""

    def of(self, field: CommandField) -> torch.Tensor:
        """Return the targets of one kind, shape [num_envs, num_elements]."""
        if field == "position":
            return self.position
        if field == "velocity":
            return self.velocity
        return self.effort


class DriveState(NamedTuple):
    """State of all joints, tendons or sites of an entity, each [num_envs, num_elements].

    The state of sites is zero.
    """

    pos: torch.Tensor
    """Positions [rad or m]."""
    vel: torch.Tensor
    """Velocities [rad/s or m/s]."""
