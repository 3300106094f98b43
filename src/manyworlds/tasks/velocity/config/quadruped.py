"""Velocity tasks of the built-in quadruped, or of another robot with the same names of parts."""

from __future__ import annotations

from functools import partial

from manyworlds.asset_zoo.quadruped import LEGS, QUADRUPED_ACTION_SCALE, get_quadruped_cfg
from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.managers import RewardTermCfg, TerminationTermCfg
from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.sensor import ContactMatch, RingPatternCfg
from manyworlds.sim import MujocoCfg
from manyworlds.tasks.velocity import mdp, velocity_cpu
from manyworlds.tasks.velocity.velocity_env_cfg import LeggedRobot, with_robot
from manyworlds.tasks.velocity.velocity_rl_cfg import velocity_ppo_runner_cfg
from manyworlds.utils.viewer_config import ViewerConfig

__all__ = [
    "quadruped_flat_env_cfg",
    "quadruped_ppo_runner_cfg",
    "quadruped_rough_env_cfg",
    "use_cpu_preset",
]

_UPPER = ".*_(hip|thigh)_joint"
_CALVES = ".*_calf_joint"

QUADRUPED = LeggedRobot(
    entity=get_quadruped_cfg,
    action_scale=QUADRUPED_ACTION_SCALE,
    root="trunk",
    trunk="trunk",
    feet=LEGS,
    feet_contact=ContactMatch(
        mode="geom", pattern=tuple(f"{leg}_foot_collision" for leg in LEGS), entity="robot"
    ),
    foot_geoms="[FR][LR]_foot_collision",
    foot_friction={
        "foot_friction_slide": {"axes": (0,), "ranges": (0.3, 1.5)},
        "foot_friction_spin": {
            "axes": (1,),
            "ranges": (1e-4, 2e-2),
            "distribution": "log_uniform",
        },
        "foot_friction_roll": {
            "axes": (2,),
            "ranges": (1e-5, 5e-3),
            "distribution": "log_uniform",
        },
    },
    foot_ring=RingPatternCfg.Ring(radius=0.04, num_samples=4),
    posture=(
        {_UPPER: 0.05, _CALVES: 0.1},
        {_UPPER: 0.3, _CALVES: 0.6},
        {_UPPER: 0.3, _CALVES: 0.6},
    ),
    touches={
        "thigh_ground_touch": ".*_thigh_collision[0-9]*",
        "shank_ground_touch": ".*_calf_collision[0-9]*",
        "trunk_ground_touch": "(trunk|head)_collision[0-9]*",
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

HIPS = ".*_hip_collision"
"""Pattern of the hips' geoms, which no sensor watches."""
use_cpu_preset = partial(velocity_cpu.use_cpu_preset, hips=HIPS)
"""Simplify physics, and learn from few samples with small symmetric networks."""


def quadruped_rough_env_cfg(
    play: bool = False, robot: LeggedRobot = QUADRUPED
) -> ManagerBasedRlEnvCfg:
    """Return the task on rough terrain, with the trunk aligned to the slope."""
    cfg = with_robot(robot, rough=True, play=play)
    add_touches(cfg)
    align_to_slope(cfg)
    return cfg


def quadruped_flat_env_cfg(
    play: bool = False, robot: LeggedRobot = QUADRUPED
) -> ManagerBasedRlEnvCfg:
    """Return the task on a plane."""
    cfg = with_robot(robot, rough=False, play=play)
    add_touches(cfg)
    return cfg


def add_touches(cfg: ManagerBasedRlEnvCfg) -> None:
    """Penalize contacts of shanks and trunk with the ground, and end episodes by the thighs'."""
    cfg.rewards["shank_collision"] = RewardTermCfg(
        func=mdp.self_collision_cost,
        weight=-0.1,
        params={"sensor_name": "shank_ground_touch"},
    )
    cfg.rewards["trunk_head_collision"] = RewardTermCfg(
        func=mdp.self_collision_cost,
        weight=-0.1,
        params={"sensor_name": "trunk_ground_touch"},
    )
    cfg.terminations["illegal_contact"] = TerminationTermCfg(
        func=mdp.illegal_contact, params={"sensor_name": "thigh_ground_touch"}
    )


def align_to_slope(cfg: ManagerBasedRlEnvCfg) -> None:
    """Reward the trunk's alignment to the terrain, and do not end episodes by its inclination."""
    cfg.rewards["upright"].params["terrain_sensor_names"] = ("terrain_scan",)
    del cfg.terminations["fell_over"]


def quadruped_ppo_runner_cfg() -> RslRlOnPolicyRunnerCfg:
    """Return the PPO settings."""
    return velocity_ppo_runner_cfg("quadruped_velocity", max_iterations=10000)
