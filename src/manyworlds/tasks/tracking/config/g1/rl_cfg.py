"""PPO settings of G1 for motion tracking."""

from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.tasks.tracking.tracking_rl_cfg import tracking_ppo_runner_cfg


def unitree_g1_tracking_ppo_runner_cfg() -> RslRlOnPolicyRunnerCfg:
    """Return the PPO settings."""
    return tracking_ppo_runner_cfg("g1_tracking", max_iterations=30000)
