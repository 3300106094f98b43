"""How a humanoid learns to follow velocity commands."""

from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.tasks.velocity.velocity_rl_cfg import velocity_ppo_runner_cfg


def humanoid_ppo_runner_cfg() -> RslRlOnPolicyRunnerCfg:
    """Settings of PPO."""
    return velocity_ppo_runner_cfg("humanoid_velocity", max_iterations=30000)
