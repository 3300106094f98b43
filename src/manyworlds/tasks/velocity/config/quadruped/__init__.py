"""Velocity tasks of the built-in quadruped."""

from manyworlds.tasks.velocity.config.quadruped.env_cfgs import (
    quadruped_flat_env_cfg,
    quadruped_rough_env_cfg,
)
from manyworlds.tasks.velocity.config.quadruped.rl_cfg import quadruped_ppo_runner_cfg
from manyworlds.tasks.velocity.velocity_cpu import use_cpu_preset

__all__ = [
    "quadruped_flat_env_cfg",
    "quadruped_ppo_runner_cfg",
    "quadruped_rough_env_cfg",
    "use_cpu_preset",
]
