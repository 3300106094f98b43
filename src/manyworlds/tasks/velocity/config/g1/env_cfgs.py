"""Velocity tasks of G1, configured like the humanoid's, whose parts have the same names."""

from __future__ import annotations

from dataclasses import replace

from manyworlds.asset_zoo.third_party import G1_ACTION_SCALE, get_g1_robot_cfg
from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.tasks.velocity.config.humanoid.env_cfgs import (
    HUMANOID,
    humanoid_flat_env_cfg,
    humanoid_rough_env_cfg,
)

G1 = replace(HUMANOID, entity=get_g1_robot_cfg, action_scale=G1_ACTION_SCALE)


def unitree_g1_rough_env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the task on rough terrain."""
    return humanoid_rough_env_cfg(play, G1)


def unitree_g1_flat_env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the task on a plane."""
    return humanoid_flat_env_cfg(play, G1)
