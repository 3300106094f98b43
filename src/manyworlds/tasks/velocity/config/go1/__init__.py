"""Velocity tasks of Unitree's Go1, whose model is not part of this package."""

from manyworlds.tasks.velocity.config.go1.env_cfgs import (
    unitree_go1_flat_env_cfg,
    unitree_go1_rough_env_cfg,
)
from manyworlds.tasks.velocity.config.go1.rl_cfg import unitree_go1_ppo_runner_cfg
from manyworlds.tasks.velocity.velocity_cpu import use_cpu_preset

__all__ = [
    "unitree_go1_flat_env_cfg",
    "unitree_go1_ppo_runner_cfg",
    "unitree_go1_rough_env_cfg",
    "use_cpu_preset",
]
