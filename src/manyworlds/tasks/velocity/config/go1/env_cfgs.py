"""Go1 follows velocity commands."""

from __future__ import annotations

from typing import Any

from manyworlds.asset_zoo.third_party import GO1_ACTION_SCALE, get_go1_robot_cfg
from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.managers import RewardTermCfg, TerminationTermCfg
from manyworlds.sensor import ContactMatch, RingPatternCfg
from manyworlds.sim import MujocoCfg
from manyworlds.tasks.velocity import mdp
from manyworlds.tasks.velocity.velocity_env_cfg import LeggedRobot, with_robot
from manyworlds.utils.viewer_config import ViewerConfig

_LEGS = ("FR", "FL", "RR", "RL")
_UPPER, _CALVES = ".*_(hip|thigh)_joint", ".*_calf_joint"

GO1 = LeggedRobot(
    entity=get_go1_robot_cfg,
    action_scale=GO1_ACTION_SCALE,
    root="trunk",
    trunk="trunk",
    feet=_LEGS,
    feet_contact=ContactMatch(
        mode="geom", pattern=tuple(f"{leg}_foot_collision" for leg in _LEGS), entity="robot"
    ),
    foot_ring=RingPatternCfg.Ring(radius=0.04, num_samples=4),
    posture=(
        {_UPPER: 0.05, _CALVES: 0.1},
        {_UPPER: 0.3, _CALVES: 0.6},
        {_UPPER: 0.3, _CALVES: 0.6},
    ),
    touches={
        "thigh_ground_touch": ".*_thigh_collision[123]",
        "shank_ground_touch": ".*_calf_collision[12]",
        "trunk_ground_touch": "(trunk|head)_collision",
    },
    weights={"body_ang_vel": 0.0, "angular_momentum": 0.0, "self_collisions": -0.1},
    viewer=ViewerConfig(
        origin_type=ViewerConfig.OriginType.ASSET_BODY,
        entity_name="robot",
        body_name="trunk",
        distance=1.5,
        elevation=-10.0,
    ),
    mujoco=MujocoCfg(
        timestep=0.005,
        impratio=10,
        cone="elliptic",
        iterations=10,
        ls_iterations=20,
        ccd_iterations=500,
    ),
)


def unitree_go1_rough_env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Make the task on rough ground, where the trunk is to be upright to the slope."""
    cfg = _go1(rough=True, play=play)
    rewards: dict[str, Any] = cfg.rewards
    rewards["upright"].params["terrain_sensor_names"] = ("terrain_scan",)
    del cfg.terminations["fell_over"]
    return cfg


def unitree_go1_flat_env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Make the task on a plane."""
    return _go1(rough=False, play=play)


def _go1(rough: bool, play: bool) -> ManagerBasedRlEnvCfg:
    cfg = with_robot(GO1, rough, play)
    for part, sensor in (("shank", "shank"), ("trunk_head", "trunk")):
        cfg.rewards[f"{part}_collision"] = RewardTermCfg(
            func=mdp.self_collision_cost,
            weight=-0.1,
            params={"sensor_name": f"{sensor}_ground_touch"},
        )
    cfg.terminations["illegal_contact"] = TerminationTermCfg(
        func=mdp.illegal_contact, params={"sensor_name": "thigh_ground_touch"}
    )
    return cfg
