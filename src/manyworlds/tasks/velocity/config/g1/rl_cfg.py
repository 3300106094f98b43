"""PPO settings of G1 for the velocity tasks."""

from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.tasks.velocity.velocity_rl_cfg import velocity_ppo_runner_cfg


def unitree_g1_ppo_runner_cfg() -> RslRlOnPolicyRunnerCfg:
    """Return the PPO settings."""
    return velocity_ppo_runner_cfg("g1_velocity", max_iterations=30000)
