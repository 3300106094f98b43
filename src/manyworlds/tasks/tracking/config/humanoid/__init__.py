"""Tracking task of the built-in humanoid."""

from manyworlds.tasks.tracking.config.humanoid.env_cfgs import (
    humanoid_flat_tracking_env_cfg,
    humanoid_flat_tracking_no_state_estimation_env_cfg,
)
from manyworlds.tasks.tracking.config.humanoid.rl_cfg import humanoid_tracking_ppo_runner_cfg
from manyworlds.tasks.tracking.tracking_cpu import use_cpu_preset

__all__ = [
    "humanoid_flat_tracking_env_cfg",
    "humanoid_flat_tracking_no_state_estimation_env_cfg",
    "humanoid_tracking_ppo_runner_cfg",
    "use_cpu_preset",
]
