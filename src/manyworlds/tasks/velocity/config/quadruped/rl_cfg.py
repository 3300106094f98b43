"""How a quadruped learns to follow velocity commands."""

from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.tasks.velocity.velocity_rl_cfg import velocity_ppo_runner_cfg


def quadruped_ppo_runner_cfg() -> RslRlOnPolicyRunnerCfg:
    """Settings of PPO."""
    return velocity_ppo_runner_cfg("quadruped_velocity", max_iterations=10000)
