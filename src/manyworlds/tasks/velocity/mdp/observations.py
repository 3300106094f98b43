"""Observations of the feet for the critic, each of shape [num_envs, n]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from manyworlds.envs.mdp import mirrors
from manyworlds.managers.symmetry import symmetry
from manyworlds.sensor import ContactSensor, TerrainHeightSensor

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv


@symmetry(mirrors.ray_frames)
def foot_height(env: ManagerBasedRlEnv, sensor_name: str) -> torch.Tensor:
    """Height of each foot above the terrain [m], shape [num_envs, feet]."""
    return env.scene.sensor(sensor_name, TerrainHeightSensor).data.heights


@symmetry(mirrors.contact_times)
def foot_air_time(env: ManagerBasedRlEnv, sensor_name: str) -> torch.Tensor:
    """Time since each foot's last contact [s], 0 during contact, shape [num_envs, feet]."""
    return env.scene.sensor(sensor_name, ContactSensor).data.current_air_time


@symmetry(mirrors.contacts)
def foot_contact(env: ManagerBasedRlEnv, sensor_name: str) -> torch.Tensor:
    """One for each foot in contact, else zero, shape [num_envs, feet]."""
    return (env.scene.sensor(sensor_name, ContactSensor).data.found > 0).float()


@symmetry(mirrors.contact_forces)
def foot_contact_forces(env: ManagerBasedRlEnv, sensor_name: str) -> torch.Tensor:
    """Contact forces of the feet [N] on a logarithmic scale, shape [num_envs, 3 * feet].

    The scale is `sign(f) log(1 + |f|)`.
    """
    force = env.scene.sensor(sensor_name, ContactSensor).data.force.flatten(1)
    return force.sign() * force.abs().log1p()
