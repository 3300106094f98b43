"""mjlab's tracking tasks of G1."""

from __future__ import annotations

from dataclasses import replace

from manyworlds.asset_zoo.third_party import G1_ACTION_SCALE
from manyworlds.compat.mjlab.facades.tasks.tracking.tracking_env_cfg import make_tracking_env_cfg
from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.tasks.tracking.config import g1 as ours
from manyworlds.tasks.tracking.config.g1 import (
    unitree_g1_tracking_ppo_runner_cfg,
    use_cpu_preset,
)
from manyworlds.tasks.tracking.tracking_env_cfg import (
    add_robot,
    prepare_for_play,
    remove_state_estimation,
)

__all__ = [
    "G1_ACTION_SCALE",
    "unitree_g1_flat_tracking_env_cfg",
    "unitree_g1_flat_tracking_no_state_estimation_env_cfg",
    "unitree_g1_tracking_ppo_runner_cfg",
    "use_cpu_preset",
]

_G1 = replace(ours.G1, foot_geoms="^(left|right)_foot[1-7]_collision$")


def unitree_g1_flat_tracking_env_cfg(
    has_state_estimation: bool = True, play: bool = False
) -> ManagerBasedRlEnvCfg:
    """Return the task on a plane; without a `motion_file`, the robot tracks this project's clip.

    Args:
        has_state_estimation: include the anchor's position and the linear velocity in the actor's
            observations.
        play: configure for playback: endless episodes from the first frame, exact observations,
            no pushes.
    """
    cfg = make_tracking_env_cfg()
    add_robot(cfg, _G1)
    if not has_state_estimation:
        remove_state_estimation(cfg)
    if play:
        prepare_for_play(cfg)
    return cfg


def unitree_g1_flat_tracking_no_state_estimation_env_cfg(
    play: bool = False,
) -> ManagerBasedRlEnvCfg:
    """Return the task without observations of the anchor's position and of the linear velocity."""
    return unitree_g1_flat_tracking_env_cfg(has_state_estimation=False, play=play)
