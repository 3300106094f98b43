"""A quadruped that is part of this package."""

from manyworlds.tasks.velocity.config.quadruped.env_cfgs import (
    quadruped_flat_env_cfg,
    quadruped_rough_env_cfg,
)
from manyworlds.tasks.velocity.config.quadruped.rl_cfg import quadruped_ppo_runner_cfg

__all__ = ["quadruped_flat_env_cfg", "quadruped_ppo_runner_cfg", "quadruped_rough_env_cfg"]
