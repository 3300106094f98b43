"""Tracking task of Unitree's G1, whose model is not part of this package."""

from manyworlds.tasks.tracking.config.g1.env_cfgs import (
    unitree_g1_flat_tracking_env_cfg,
    unitree_g1_flat_tracking_no_state_estimation_env_cfg,
)
from manyworlds.tasks.tracking.config.g1.rl_cfg import unitree_g1_tracking_ppo_runner_cfg
from manyworlds.tasks.tracking.tracking_cpu import use_cpu_preset

__all__ = [
    "unitree_g1_flat_tracking_env_cfg",
    "unitree_g1_flat_tracking_no_state_estimation_env_cfg",
    "unitree_g1_tracking_ppo_runner_cfg",
    "use_cpu_preset",
]
