"""mjlab's velocity tasks of Go1."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from manyworlds.asset_zoo.third_party import GO1_ACTION_SCALE
from manyworlds.compat.mjlab.facades.tasks.velocity.config.robot import with_robot
from manyworlds.compat.mjlab.robots import get_go1_robot_cfg
from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.tasks.velocity.config import go1 as ours
from manyworlds.tasks.velocity.config.go1 import unitree_go1_ppo_runner_cfg, use_cpu_preset
from manyworlds.tasks.velocity.config.quadruped import add_touches, align_to_slope

__all__ = [
    "GO1_ACTION_SCALE",
    "TerrainType",
    "unitree_go1_flat_env_cfg",
    "unitree_go1_ppo_runner_cfg",
    "unitree_go1_rough_env_cfg",
    "use_cpu_preset",
]

TerrainType = Literal["rough", "obstacles"]

_LEGS = ours.GO1.feet
_UPPER, _CALVES = ".*(FR|FL|RR|RL)_(hip|thigh)_joint.*", ".*(FR|FL|RR|RL)_calf_joint.*"
_GO1 = replace(
    ours.GO1,
    entity=get_go1_robot_cfg,
    foot_geoms=tuple(f"{leg}_foot_collision" for leg in _LEGS),
    posture=(
        {_UPPER: 0.05, _CALVES: 0.1},
        {_UPPER: 0.3, _CALVES: 0.6},
        {_UPPER: 0.3, _CALVES: 0.6},
    ),
    touches={
        **ours.GO1.touches,
        "thigh_ground_touch": tuple(
            f"{leg}_thigh_collision{i}" for leg in _LEGS for i in range(1, 4)
        ),
    },
    weights={},
)


def unitree_go1_rough_env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the task on rough terrain, with the trunk aligned to the slope."""
    cfg = _env_cfg(rough=True, play=play)
    align_to_slope(cfg)
    return cfg


def unitree_go1_flat_env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the task on a plane."""
    return _env_cfg(rough=False, play=play)


def _env_cfg(rough: bool, play: bool) -> ManagerBasedRlEnvCfg:
    cfg = with_robot(_GO1, self_collisions=-0.1, rough=rough, play=play)
    del cfg.events["foot_friction"]  # replaced by one event per axis
    add_touches(cfg)
    return cfg
