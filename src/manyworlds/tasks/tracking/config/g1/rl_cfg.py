"""How G1 learns to track motions."""

from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.tasks.tracking.tracking_rl_cfg import tracking_ppo_runner_cfg


def unitree_g1_tracking_ppo_runner_cfg() -> RslRlOnPolicyRunnerCfg:
    """Settings of PPO."""
    return tracking_ppo_runner_cfg("g1_tracking", max_iterations=30000)
