"""Unitree's G1, whose model is not part of this package."""

from functools import partial

from manyworlds.tasks.velocity import velocity_cpu
from manyworlds.tasks.velocity.config.g1.env_cfgs import (
    unitree_g1_flat_env_cfg,
    unitree_g1_rough_env_cfg,
)
from manyworlds.tasks.velocity.config.g1.rl_cfg import unitree_g1_ppo_runner_cfg

__all__ = [
    "unitree_g1_flat_env_cfg",
    "unitree_g1_ppo_runner_cfg",
    "unitree_g1_rough_env_cfg",
    "use_cpu_preset",
]

# Legs that could pass through each other would.
use_cpu_preset = partial(velocity_cpu.use_cpu_preset, self_collisions=True)
