"""mjlab's velocity task without a robot.

Its terms are those of this project's task; the names of the robot's parts are empty.
"""

from __future__ import annotations

import copy

from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.envs.mdp import dr
from manyworlds.managers import EventTermCfg, SceneEntityCfg
from manyworlds.scene import SceneCfg
from manyworlds.sensor import (
    GridPatternCfg,
    ObjRef,
    RayCastSensorCfg,
    SensorCfg,
    TerrainHeightSensorCfg,
)
from manyworlds.sim import MujocoCfg, SimulationCfg
from manyworlds.tasks.velocity import mdp
from manyworlds.tasks.velocity import velocity_env_cfg as ours
from manyworlds.terrains import TerrainEntityCfg
from manyworlds.terrains.config import ROUGH_TERRAINS_CFG
from manyworlds.utils.viewer_config import ViewerConfig

__all__ = ["ROUGH_TERRAINS_CFG", "make_velocity_env_cfg"]

_MAGENTA = (1.0, 0.0, 1.0)


def make_velocity_env_cfg() -> ManagerBasedRlEnvCfg:
    """Return the task on rough terrain, for a robot "robot" that is still to be added.

    To be set: scene entities; frames and pattern of the sensor "foot_height_scan", the frame of
    "terrain_scan", a contact sensor "feet_ground_contact"; names in `asset_cfg` of rewards and
    events; standard deviations of the reward "pose"; the body of the viewer.
    """
    cfg = ours.make_velocity_env_cfg()
    cfg.scene = SceneCfg(
        terrain=TerrainEntityCfg(
            terrain_type="generator",
            terrain_generator=copy.deepcopy(ROUGH_TERRAINS_CFG),
            max_init_terrain_level=5,
        ),
        sensors=_sensors(),
        extent=2.0,
    )
    cfg.sim = SimulationCfg(
        nconmax=35,
        njmax=1500,
        mujoco=MujocoCfg(timestep=0.005, iterations=10, ls_iterations=20),
    )
    cfg.viewer = ViewerConfig(
        origin_type=ViewerConfig.OriginType.ASSET_BODY,
        entity_name="robot",
        body_name="",
        distance=3.0,
        elevation=-5.0,
    )
    action = cfg.actions["joint_pos"]
    assert isinstance(action, mdp.JointPositionActionCfg)
    action.scale = 0.5
    _add_noise_of_critic(cfg)
    _leave_out_names(cfg)
    cfg.events |= _randomization()
    del cfg.terminations["diverged"]
    return cfg


def _sensors() -> tuple[SensorCfg, ...]:
    return (
        RayCastSensorCfg(
            name="terrain_scan",
            frame=ObjRef(type="body", name="", entity="robot"),
            pattern=GridPatternCfg(size=(1.6, 1.0)),
            ray_alignment="yaw",
            max_distance=5.0,
            include_geom_groups=(0,),
            debug_vis=True,
        ),
        TerrainHeightSensorCfg(
            name="foot_height_scan",
            frame=(),
            ray_alignment="yaw",
            max_distance=1.0,
            include_geom_groups=(0,),
            debug_vis=True,
            viz=TerrainHeightSensorCfg.VizCfg(
                hit_color=(*_MAGENTA, 0.8), hit_sphere_color=(*_MAGENTA, 1.0), show_rays=True
            ),
        ),
    )


def _add_noise_of_critic(cfg: ManagerBasedRlEnvCfg) -> None:
    """Give the critic's terms noise, which its `enable_corruption` turns off."""
    actor = cfg.observations["actor"]
    critic = cfg.observations["critic"]
    for name in ("base_lin_vel", "base_ang_vel", "projected_gravity", "joint_vel"):
        critic.terms[name].noise = copy.deepcopy(actor.terms[name].noise)


def _leave_out_names(cfg: ManagerBasedRlEnvCfg) -> None:
    """Leave the names in rewards empty, and the weights of some to the robot."""
    rewards = cfg.rewards
    for name in ("upright", "body_ang_vel"):
        rewards[name].params["asset_cfg"] = SceneEntityCfg("robot", body_names=())
    for name in ("foot_clearance", "foot_slip"):
        rewards[name].params["asset_cfg"] = SceneEntityCfg("robot", site_names=())
    rewards["pose"].params |= {
        "std_standing": {},
        "std_walking": {},
        "std_running": {},
        "walking_threshold": 0.05,
        "running_threshold": 1.5,
    }
    rewards["body_ang_vel"].weight = rewards["angular_momentum"].weight = 0.0
    del rewards["self_collisions"]


def _randomization() -> dict[str, EventTermCfg]:
    by_axis = {0: (-0.025, 0.025), 1: (-0.025, 0.025), 2: (-0.03, 0.03)}
    return {
        "foot_friction": EventTermCfg(
            func=dr.geom_friction,
            mode="startup",
            params={
                "asset_cfg": SceneEntityCfg("robot", geom_names=()),
                "operation": "abs",
                "ranges": (0.3, 1.2),
                "shared_random": True,
            },
        ),
        "encoder_bias": EventTermCfg(
            func=dr.encoder_bias,
            mode="startup",
            params={"asset_cfg": SceneEntityCfg("robot"), "bias_range": (-0.015, 0.015)},
        ),
        "base_com": EventTermCfg(
            func=dr.body_com_offset,
            mode="startup",
            params={
                "asset_cfg": SceneEntityCfg("robot", body_names=()),
                "operation": "add",
                "ranges": by_axis,
            },
        ),
    }
