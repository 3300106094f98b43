"""How G1 learns to follow velocity commands."""

from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.tasks.velocity.velocity_rl_cfg import velocity_ppo_runner_cfg


def unitree_g1_ppo_runner_cfg() -> RslRlOnPolicyRunnerCfg:
    """Settings of PPO."""
    return velocity_ppo_runner_cfg("g1_velocity", max_iterations=30000)
