"""Motion tracking with G1, configured like the humanoid, whose parts have the same names."""

from __future__ import annotations

from dataclasses import replace

from manyworlds.asset_zoo.third_party import G1_ACTION_SCALE, get_g1_robot_cfg
from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.tasks.tracking.clip import wave_and_squat
from manyworlds.tasks.tracking.config.humanoid import CLIP, HUMANOID
from manyworlds.tasks.tracking.motion import Motion
from manyworlds.tasks.tracking.tracking_cpu import use_cpu_preset
from manyworlds.tasks.tracking.tracking_env_cfg import with_robot
from manyworlds.tasks.tracking.tracking_rl_cfg import tracking_ppo_runner_cfg

__all__ = [
    "unitree_g1_flat_tracking_env_cfg",
    "unitree_g1_flat_tracking_no_state_estimation_env_cfg",
    "unitree_g1_tracking_ppo_runner_cfg",
    "use_cpu_preset",
]


def g1_clip() -> Motion:
    """Compute the clip that is tracked if no motion file is given."""
    return wave_and_squat(replace(CLIP, entity=get_g1_robot_cfg))


G1 = replace(
    HUMANOID,
    entity=get_g1_robot_cfg,
    action_scale=G1_ACTION_SCALE,
    motion=g1_clip,
    relative_actions=False,
)


def unitree_g1_flat_tracking_env_cfg(
    has_state_estimation: bool = True, play: bool = False
) -> ManagerBasedRlEnvCfg:
    """Return the task; see `with_robot`."""
    return with_robot(G1, has_state_estimation, play)


def unitree_g1_flat_tracking_no_state_estimation_env_cfg(
    play: bool = False,
) -> ManagerBasedRlEnvCfg:
    """Return the task without observations of the anchor's position and of the linear velocity."""
    return with_robot(G1, has_state_estimation=False, play=play)


def unitree_g1_tracking_ppo_runner_cfg() -> RslRlOnPolicyRunnerCfg:
    """Return the PPO settings."""
    return tracking_ppo_runner_cfg("g1_tracking", max_iterations=30000)
