"""PPO settings of a humanoid for motion tracking."""

from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.tasks.tracking.tracking_rl_cfg import tracking_ppo_runner_cfg


def humanoid_tracking_ppo_runner_cfg() -> RslRlOnPolicyRunnerCfg:
    """Return the PPO settings."""
    return tracking_ppo_runner_cfg("humanoid_tracking", max_iterations=30000)
