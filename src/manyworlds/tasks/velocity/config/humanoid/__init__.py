"""Velocity tasks of the built-in humanoid."""

from manyworlds.tasks.velocity.config.humanoid.env_cfgs import (
    humanoid_flat_env_cfg,
    humanoid_rough_env_cfg,
)
from manyworlds.tasks.velocity.config.humanoid.rl_cfg import humanoid_ppo_runner_cfg
from manyworlds.tasks.velocity.velocity_cpu import use_biped_cpu_preset as use_cpu_preset

__all__ = [
    "humanoid_flat_env_cfg",
    "humanoid_ppo_runner_cfg",
    "humanoid_rough_env_cfg",
    "use_cpu_preset",
]
