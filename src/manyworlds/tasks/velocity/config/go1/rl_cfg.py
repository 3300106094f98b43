"""PPO settings of Go1 for the velocity tasks."""

from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.tasks.velocity.velocity_rl_cfg import velocity_ppo_runner_cfg


def unitree_go1_ppo_runner_cfg() -> RslRlOnPolicyRunnerCfg:
    """Return the PPO settings."""
    return velocity_ppo_runner_cfg("go1_velocity", max_iterations=10000)
