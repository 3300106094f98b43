"""Velocity tasks of Unitree's G1, whose model is not part of this package."""

from manyworlds.tasks.velocity.config.g1.env_cfgs import (
    unitree_g1_flat_env_cfg,
    unitree_g1_rough_env_cfg,
)
from manyworlds.tasks.velocity.config.g1.rl_cfg import unitree_g1_ppo_runner_cfg
from manyworlds.tasks.velocity.velocity_cpu import use_biped_cpu_preset as use_cpu_preset

__all__ = [
    "unitree_g1_flat_env_cfg",
    "unitree_g1_ppo_runner_cfg",
    "unitree_g1_rough_env_cfg",
    "use_cpu_preset",
]
