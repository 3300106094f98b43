"""PPO settings of a quadruped for the velocity tasks."""

from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.tasks.velocity.velocity_rl_cfg import velocity_ppo_runner_cfg


def quadruped_ppo_runner_cfg() -> RslRlOnPolicyRunnerCfg:
    """Return the PPO settings."""
    return velocity_ppo_runner_cfg("quadruped_velocity", max_iterations=10000)
