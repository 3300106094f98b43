"""How a humanoid learns to track motions."""

from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.tasks.tracking.tracking_rl_cfg import tracking_ppo_runner_cfg


def humanoid_tracking_ppo_runner_cfg() -> RslRlOnPolicyRunnerCfg:
    """Settings of PPO."""
    return tracking_ppo_runner_cfg("humanoid_tracking", max_iterations=30000)
