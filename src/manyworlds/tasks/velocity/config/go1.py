"""Velocity tasks of Go1, configured like the quadruped's, whose parts have the same names."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from manyworlds.asset_zoo.third_party import GO1_ACTION_SCALE, get_go1_robot_cfg
from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.tasks.velocity import velocity_cpu
from manyworlds.tasks.velocity.config.quadruped import (
    HIPS,
    QUADRUPED,
    quadruped_flat_env_cfg,
    quadruped_rough_env_cfg,
)
from manyworlds.tasks.velocity.velocity_rl_cfg import velocity_ppo_runner_cfg

__all__ = [
    "unitree_go1_flat_env_cfg",
    "unitree_go1_ppo_runner_cfg",
    "unitree_go1_rough_env_cfg",
    "use_cpu_preset",
]

GO1 = replace(QUADRUPED, entity=get_go1_robot_cfg, action_scale=GO1_ACTION_SCALE)
# Go1 walks earlier than the quadruped on a plane, and then falls less with less noise; rough
# terrain takes it more samples.
use_cpu_preset = partial(
    velocity_cpu.use_cpu_preset,
    noisy_iterations=180,
    hips=HIPS,
    rough_iterations=2400,
    posture=None,  # a larger one makes actions change faster until the end
)
"""Simplify physics, and learn from few samples with small symmetric networks."""


def unitree_go1_rough_env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the task on rough terrain, with the trunk aligned to the slope."""
    return quadruped_rough_env_cfg(play, GO1)


def unitree_go1_flat_env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the task on a plane."""
    return quadruped_flat_env_cfg(play, GO1)


def unitree_go1_ppo_runner_cfg() -> RslRlOnPolicyRunnerCfg:
    """Return the PPO settings."""
    return velocity_ppo_runner_cfg("go1_velocity", max_iterations=10000)
