"""What the critic is told of the feet, each of shape [num_envs, n]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


def foot_height(env: ManagerBasedRlEnv, sensor_name: str) -> torch.Tensor:
    """Height of each foot over the ground [m], from a `TerrainHeightSensor`."""
    return env.scene[sensor_name].data.heights


def foot_air_time(env: ManagerBasedRlEnv, sensor_name: str) -> torch.Tensor:
    """Time since each foot's last contact, 0 in contact [s]."""
    return env.scene[sensor_name].data.current_air_time


def foot_contact(env: ManagerBasedRlEnv, sensor_name: str) -> torch.Tensor:
    """One for each foot in contact."""
    return (env.scene[sensor_name].data.found > 0).float()


def foot_contact_forces(env: ManagerBasedRlEnv, sensor_name: str) -> torch.Tensor:
    """Contact forces of the feet [N] on a logarithmic scale, `sign(f) log(1 + |f|)`."""
    force = env.scene[sensor_name].data.force.flatten(1)
    return force.sign() * force.abs().log1p()
