"""Termination terms, each booleans of shape [num_envs]."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from manyworlds.envs.mdp.rewards import exceeds
from manyworlds.managers.scene_entity_config import SceneEntityCfg
from manyworlds.sensor import ContactSensor
from manyworlds.sim import FATAL

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv

_ROBOT = SceneEntityCfg("robot")


def time_out(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Mask of episodes that reached their maximum length, shape [num_envs]."""
    return env.episode_length_buf >= env.max_episode_length


def bad_orientation(
    env: ManagerBasedRlEnv, limit_angle: float, asset_cfg: SceneEntityCfg = _ROBOT
) -> torch.Tensor:
    """Mask of roots tilted by more than `limit_angle` [rad] from the vertical, shape [num_envs].

    The vertical is the direction of the world's gravity; without gravity, no root is tilted.
    """
    gravity = env.scene.entity(asset_cfg.name).data.projected_gravity_b
    return (-gravity[:, 2] < math.cos(limit_angle)) & gravity.any(dim=1)


def root_height_below_minimum(
    env: ManagerBasedRlEnv, minimum_height: float, asset_cfg: SceneEntityCfg = _ROBOT
) -> torch.Tensor:
    """Mask of roots lower than `minimum_height` [m] in the world, shape [num_envs]."""
    return env.scene.entity(asset_cfg.name).data.root_link_pos_w[:, 2] < minimum_height


def nan_detection(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Mask of worlds with a position or velocity that is not finite, shape [num_envs]."""
    data = env.sim.data
    # A sum is finite only if every element is: opposite infinities cancel to NaN.
    return ~torch.isfinite(data.qpos.sum(dim=1) + data.qvel.sum(dim=1))


def bad_world(env: ManagerBasedRlEnv, bits: int = FATAL) -> torch.Tensor:
    """Mask of worlds with invalid results, shape [num_envs].

    Invalid are worlds that diverge, raise an engine error, or lose contacts.

    Args:
        env: the environment.
        bits: bits of `WorldStatus` that end the episode.
    """
    return (env.sim.status & int(bits)) != 0


def illegal_contact(
    env: ManagerBasedRlEnv, sensor_name: str, force_threshold: float = 10.0
) -> torch.Tensor:
    """Mask of worlds with a contact force above a threshold [N], shape [num_envs].

    If the sensor has a history, its largest force counts.

    A sensor without forces counts every contact.
    """
    data = env.scene.sensor(sensor_name, ContactSensor).data
    forces = data.force if data.force_history is None else data.force_history
    if forces is None:
        return (data.found > 0).any(dim=1)
    return exceeds(forces, force_threshold).flatten(1).any(dim=1)
