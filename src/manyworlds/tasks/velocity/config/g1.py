"""Velocity tasks of G1, configured like the humanoid's, whose parts have the same names."""

from __future__ import annotations

from dataclasses import replace

from manyworlds.asset_zoo.third_party import G1_ACTION_SCALE, get_g1_robot_cfg
from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.tasks.velocity.config.humanoid import (
    HUMANOID,
    humanoid_flat_env_cfg,
    humanoid_rough_env_cfg,
)
from manyworlds.tasks.velocity.velocity_cpu import use_biped_cpu_preset as use_cpu_preset
from manyworlds.tasks.velocity.velocity_rl_cfg import velocity_ppo_runner_cfg

__all__ = [
    "unitree_g1_flat_env_cfg",
    "unitree_g1_ppo_runner_cfg",
    "unitree_g1_rough_env_cfg",
    "use_cpu_preset",
]

G1 = replace(HUMANOID, entity=get_g1_robot_cfg, action_scale=G1_ACTION_SCALE)


def unitree_g1_rough_env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the task on rough terrain."""
    return humanoid_rough_env_cfg(play, G1)


def unitree_g1_flat_env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the task on a plane."""
    return humanoid_flat_env_cfg(play, G1)


def unitree_g1_ppo_runner_cfg() -> RslRlOnPolicyRunnerCfg:
    """Return the PPO settings."""
    return velocity_ppo_runner_cfg("g1_velocity", max_iterations=30000)
