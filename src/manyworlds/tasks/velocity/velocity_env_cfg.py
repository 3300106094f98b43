"""Velocity task, for any legged robot that is described by a `LeggedRobot`."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from manyworlds.entity import EntityCfg
from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.envs.mdp import dr
from manyworlds.managers import (
    CommandTermCfg,
    CurriculumTermCfg,
    EventTermCfg,
    MetricsTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationTermCfg,
)
from manyworlds.scene import SceneCfg
from manyworlds.sensor import (
    ContactMatch,
    ContactSensorCfg,
    GridPatternCfg,
    ObjRef,
    RayCastSensorCfg,
    RingPatternCfg,
    SensorCfg,
    TerrainHeightSensorCfg,
)
from manyworlds.signals import UniformNoiseCfg
from manyworlds.sim import MujocoCfg, SimulationCfg
from manyworlds.tasks.velocity import mdp
from manyworlds.terrains import TerrainEntityCfg, TerrainGeneratorCfg
from manyworlds.terrains.config import HIGH_STEPS_TERRAINS_CFG
from manyworlds.utils.viewer_config import ViewerConfig

_FOREVER = 1e9  # longer than any episode [s]
_PLAY_WORLDS = 16
_CONTROL_STEPS = 24  # per iteration of the learner, the unit of curriculum stages


@dataclass(frozen=True, kw_only=True)
class LeggedRobot:
    """Description of a legged robot for the task; names are those of the robot's model.

    The model has the sensors `imu_lin_vel`, `imu_ang_vel` and `root_angmom`.
    """

    entity: Callable[[], EntityCfg]
    """Function that returns the robot's configuration."""
    action_scale: Mapping[str, float]
    """Position offset for an action of 1, by joint name [rad]."""
    root: str
    """Body to which the terrain scan is attached."""
    trunk: str
    """Body whose orientation is rewarded."""
    feet: tuple[str, ...]
    """Sites at the soles, in the order of `feet_contact`."""
    feet_contact: ContactMatch
    """Parts of the feet whose contacts with the ground are sensed."""
    foot_geoms: str | tuple[str, ...]
    """Regular expressions of the feet's geoms, whose friction is randomized."""
    foot_friction: Mapping[str, Mapping[str, Any]]
    """Randomization of the friction: name of an event -> parameters of `dr.geom_friction`."""
    foot_ring: RingPatternCfg.Ring
    """Ring of rays around a foot that measure the terrain's height."""
    posture: tuple[dict[str, float], dict[str, float], dict[str, float]]
    """Standard deviations of joints when standing, walking and running [rad]."""
    touches: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    """Additional contact sensors with the ground: name -> regular expressions of geoms."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Weights of rewards that differ from the task's."""
    viewer: ViewerConfig = field(default_factory=ViewerConfig)
    mujoco: MujocoCfg = field(default_factory=MujocoCfg)


def make_velocity_env_cfg() -> ManagerBasedRlEnvCfg:
    """Return the task on rough terrain, without a robot; `with_robot` adds one.

    The terms use an entity "robot" and sensors "terrain_scan", "foot_height_scan",
    "feet_ground_contact" and "self_collision".
    """
    terrain = copy.deepcopy(HIGH_STEPS_TERRAINS_CFG)
    terrain.curriculum = True
    return ManagerBasedRlEnvCfg(
        decimation=4,
        episode_length_s=20.0,
        scene=SceneCfg(
            num_envs=4096,
            terrain=TerrainEntityCfg(
                terrain_type="generator", terrain_generator=terrain, max_init_terrain_level=5
            ),
        ),
        sim=SimulationCfg(
            mujoco=MujocoCfg(timestep=0.005, iterations=10, ls_iterations=20, ccd_iterations=500)
        ),
        observations=_observations(),
        actions={
            "joint_pos": mdp.JointPositionActionCfg(entity_name="robot", actuator_names=(".*",))
        },
        commands={"twist": _command()},
        rewards=_rewards(),
        terminations={
            "time_out": TerminationTermCfg(func=mdp.time_out, time_out=True),
            "fell_over": TerminationTermCfg(
                func=mdp.bad_orientation, params={"limit_angle": math.radians(70.0)}
            ),
            "out_of_terrain_bounds": TerminationTermCfg(
                func=mdp.out_of_terrain_bounds, time_out=True
            ),
            "diverged": TerminationTermCfg(func=mdp.bad_world),
        },
        events=_events(),
        curriculum=_curriculum(),
        metrics={"mean_action_acc": MetricsTermCfg(func=mdp.mean_action_acc)},
    )


def with_robot(robot: LeggedRobot, rough: bool = True, play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the task of a robot.

    Args:
        robot: the robot.
        rough: use generated terrain with a curriculum; else a plane.
        play: configure for playback: endless episodes, exact observations, no pushes, and terrain
            without a curriculum.
    """
    cfg = make_velocity_env_cfg()
    add_robot(cfg, robot)
    if not rough:
        flatten(cfg)
    if play:
        prepare_for_play(cfg)
        cfg.scene.num_envs = _PLAY_WORLDS
    return cfg


def add_robot(cfg: ManagerBasedRlEnvCfg, robot: LeggedRobot) -> None:
    """Add a robot, its sensors and its randomization to the task."""
    cfg.scene.entities = {"robot": robot.entity()}
    cfg.scene.sensors = _sensors(robot)
    cfg.sim.mujoco = copy.deepcopy(robot.mujoco)
    cfg.viewer = copy.deepcopy(robot.viewer)
    action = cfg.actions["joint_pos"]
    assert isinstance(action, mdp.JointPositionActionCfg)
    action.scale = dict(robot.action_scale)
    rewards = cfg.rewards
    trunk = SceneEntityCfg("robot", body_names=(robot.trunk,))
    rewards["upright"].params["asset_cfg"] = trunk
    rewards["body_ang_vel"].params["asset_cfg"] = copy.deepcopy(trunk)
    feet = SceneEntityCfg("robot", site_names=robot.feet, preserve_order=True)
    rewards["foot_clearance"].params["asset_cfg"] = feet
    rewards["foot_slip"].params["asset_cfg"] = copy.deepcopy(feet)
    standing, walking, running = robot.posture
    rewards["pose"].params["std_standing"] = dict(standing)
    rewards["pose"].params["std_walking"] = dict(walking)
    rewards["pose"].params["std_running"] = dict(running)
    for name, weight in robot.weights.items():
        rewards[name].weight = weight
    cfg.events |= _randomization(robot)


def flatten(cfg: ManagerBasedRlEnvCfg) -> None:
    """Replace the terrain by a plane, and remove the sensors and terms that measure terrain."""
    cfg.scene.terrain = TerrainEntityCfg()
    cfg.scene.sensors = tuple(s for s in cfg.scene.sensors if s.name != "terrain_scan")
    for group in cfg.observations.values():
        del group.terms["height_scan"]
    del cfg.terminations["out_of_terrain_bounds"]
    del cfg.curriculum["terrain_levels"]


def prepare_for_play(cfg: ManagerBasedRlEnvCfg) -> None:
    """Configure the task of a robot for playback; see `with_robot`."""
    cfg.episode_length_s = _FOREVER
    cfg.observations["actor"].enable_corruption = False
    del cfg.events["push_robot"]
    cfg.curriculum = {}
    terrain = generator_of(cfg)
    if terrain is not None:
        terrain.curriculum = False
        terrain.num_rows = 5
        terrain.num_cols = 5
        terrain.border_width = 10.0
        cfg.events = {
            "randomize_terrain": EventTermCfg(func=mdp.randomize_terrain, mode="reset"),
            **cfg.events,
        }


def generator_of(cfg: ManagerBasedRlEnvCfg) -> TerrainGeneratorCfg | None:
    """Return the configuration of the generated terrain; None on a plane and without terrain."""
    terrain = cfg.scene.terrain
    if terrain is None or terrain.terrain_type != "generator":
        return None
    return terrain.terrain_generator


def hold_terrain_level(cfg: ManagerBasedRlEnvCfg, level: int) -> None:
    """Keep all worlds on cells of one level of the terrain, instead of the curriculum.

    Args:
        cfg: the environment; it is modified.
        level: row of the terrain, from 0.

    Raises:
        ValueError: the terrain is not generated, or has no such row.
    """
    generator = generator_of(cfg)
    if generator is None:
        raise ValueError(
            f"The environment has no generated terrain, so that it has no level {level}: leave the "
            "level out, or use a task on rough terrain."
        )
    if not 0 <= level < generator.num_rows:
        raise ValueError(
            f"The terrain has levels from 0 to {generator.num_rows - 1}, got {level}: choose one "
            "of these, or increase scene.terrain.terrain_generator.num_rows."
        )
    cfg.curriculum = {
        name: term
        for name, term in cfg.curriculum.items()
        if term is None or term.func is not mdp.terrain_levels_vel
    }
    event = EventTermCfg(
        func=mdp.randomize_terrain, mode="reset", params={"levels": (level, level)}
    )
    # First, because other events place robots there; the configuration for playback has its own.
    others = {name: term for name, term in cfg.events.items() if name != "randomize_terrain"}
    cfg.events = {"randomize_terrain": event, **others}


def _sensors(robot: LeggedRobot) -> tuple[SensorCfg, ...]:
    sensors: list[SensorCfg] = [
        RayCastSensorCfg(
            name="terrain_scan",
            frame=ObjRef(type="body", name=robot.root, entity="robot"),
            pattern=GridPatternCfg(size=(1.6, 1.0)),
            ray_alignment="yaw",
            max_distance=5.0,
            include_geom_groups=(0,),
            debug_vis=True,
            viz=RayCastSensorCfg.VizCfg(hit_sphere_radius=0.1),
        ),
        TerrainHeightSensorCfg(
            name="foot_height_scan",
            frame=tuple(ObjRef(type="site", name=foot, entity="robot") for foot in robot.feet),
            pattern=RingPatternCfg(rings=(copy.deepcopy(robot.foot_ring),)),
            ray_alignment="yaw",
            max_distance=1.0,
            include_geom_groups=(0,),
        ),
        ContactSensorCfg(
            name="feet_ground_contact",
            primary=copy.deepcopy(robot.feet_contact),
            secondary=ContactMatch(mode="body", pattern="terrain"),
            reduce="netforce",
            track_air_time=True,
        ),
        ContactSensorCfg(
            name="self_collision",
            primary=ContactMatch(mode="subtree", pattern=robot.root, entity="robot"),
            secondary=ContactMatch(mode="subtree", pattern=robot.root, entity="robot"),
            reduce="none",
            history_length=4,
        ),
    ]
    for name, pattern in robot.touches.items():
        sensors.append(
            ContactSensorCfg(
                name=name,
                primary=ContactMatch(mode="geom", pattern=pattern, entity="robot"),
                secondary=ContactMatch(mode="body", pattern="terrain"),
                reduce="none",
                history_length=4,
            )
        )
    return tuple(sensors)


def _command() -> CommandTermCfg:
    return mdp.UniformVelocityCommandCfg(
        entity_name="robot",
        resampling_time_range=(3.0, 8.0),
        heading_command=True,
        heading_control_stiffness=0.5,
        rel_standing_envs=0.1,
        rel_heading_envs=0.3,
        rel_forward_envs=0.2,
        ranges=mdp.UniformVelocityCommandCfg.Ranges(
            lin_vel_x=(-1.0, 1.0),
            lin_vel_y=(-1.0, 1.0),
            ang_vel_z=(-0.5, 0.5),
            heading=(-math.pi, math.pi),
        ),
        debug_vis=True,
    )


def _observations() -> dict[str, ObservationGroupCfg]:
    """Define observations: sensor measurements, with noise for the actor; the critic adds feet."""
    actor_terms = {
        "base_lin_vel": ObservationTermCfg(
            func=mdp.builtin_sensor,
            params={"sensor_name": "robot/imu_lin_vel"},
            noise=UniformNoiseCfg(n_min=-0.5, n_max=0.5),
        ),
        "base_ang_vel": ObservationTermCfg(
            func=mdp.builtin_sensor,
            params={"sensor_name": "robot/imu_ang_vel"},
            noise=UniformNoiseCfg(n_min=-0.2, n_max=0.2),
        ),
        "projected_gravity": ObservationTermCfg(
            func=mdp.projected_gravity,
            noise=UniformNoiseCfg(n_min=-0.05, n_max=0.05),
        ),
        "joint_pos": ObservationTermCfg(
            func=mdp.joint_pos_rel,
            params={"biased": True},
            noise=UniformNoiseCfg(n_min=-0.01, n_max=0.01),
        ),
        "joint_vel": ObservationTermCfg(
            func=mdp.joint_vel_rel,
            noise=UniformNoiseCfg(n_min=-1.5, n_max=1.5),
        ),
        "actions": ObservationTermCfg(func=mdp.last_action),
        "command": ObservationTermCfg(
            func=mdp.generated_commands, params={"command_name": "twist"}
        ),
        "height_scan": ObservationTermCfg(
            func=mdp.height_scan,
            params={"sensor_name": "terrain_scan"},
            noise=UniformNoiseCfg(n_min=-0.1, n_max=0.1),
            scale=0.2,
        ),
    }
    critic_terms = {
        "base_lin_vel": ObservationTermCfg(
            func=mdp.builtin_sensor, params={"sensor_name": "robot/imu_lin_vel"}
        ),
        "base_ang_vel": ObservationTermCfg(
            func=mdp.builtin_sensor, params={"sensor_name": "robot/imu_ang_vel"}
        ),
        "projected_gravity": ObservationTermCfg(func=mdp.projected_gravity),
        "joint_pos": ObservationTermCfg(func=mdp.joint_pos_rel),
        "joint_vel": ObservationTermCfg(func=mdp.joint_vel_rel),
        "actions": ObservationTermCfg(func=mdp.last_action),
        "command": ObservationTermCfg(
            func=mdp.generated_commands, params={"command_name": "twist"}
        ),
        "height_scan": ObservationTermCfg(
            func=mdp.height_scan, params={"sensor_name": "terrain_scan"}, scale=0.2
        ),
        "foot_height": ObservationTermCfg(
            func=mdp.foot_height, params={"sensor_name": "foot_height_scan"}
        ),
        "foot_air_time": ObservationTermCfg(
            func=mdp.foot_air_time, params={"sensor_name": "feet_ground_contact"}
        ),
        "foot_contact": ObservationTermCfg(
            func=mdp.foot_contact, params={"sensor_name": "feet_ground_contact"}
        ),
        "foot_contact_forces": ObservationTermCfg(
            func=mdp.foot_contact_forces, params={"sensor_name": "feet_ground_contact"}
        ),
    }
    return {
        "actor": ObservationGroupCfg(terms=actor_terms, enable_corruption=True),
        "critic": ObservationGroupCfg(terms=critic_terms),
    }


def _rewards() -> dict[str, RewardTermCfg]:
    """Define rewards; those of weight 0 may be enabled by a robot."""
    return {
        "track_linear_velocity": RewardTermCfg(
            func=mdp.track_linear_velocity,
            weight=2.0,
            params={"command_name": "twist", "std": math.sqrt(0.25)},
        ),
        "track_angular_velocity": RewardTermCfg(
            func=mdp.track_angular_velocity,
            weight=2.0,
            params={"command_name": "twist", "std": math.sqrt(0.5)},
        ),
        "upright": RewardTermCfg(
            func=mdp.upright,
            weight=1.0,
            params={"std": math.sqrt(0.2)},
        ),
        "pose": RewardTermCfg(
            func=mdp.variable_posture,
            weight=1.0,
            params={
                "command_name": "twist",
                "asset_cfg": SceneEntityCfg("robot", joint_names=(".*",)),
            },
        ),
        "body_ang_vel": RewardTermCfg(func=mdp.body_angular_velocity_penalty, weight=-0.05),
        "angular_momentum": RewardTermCfg(
            func=mdp.angular_momentum_penalty,
            weight=-0.02,
            params={"sensor_name": "robot/root_angmom"},
        ),
        "dof_pos_limits": RewardTermCfg(func=mdp.joint_pos_limits, weight=-1.0),
        "action_rate_l2": RewardTermCfg(func=mdp.action_rate_l2, weight=-0.1),
        "air_time": RewardTermCfg(
            func=mdp.feet_air_time,
            weight=0.0,
            params={
                "sensor_name": "feet_ground_contact",
                "threshold_min": 0.05,
                "threshold_max": 0.5,
                "command_name": "twist",
                "command_threshold": 0.5,
            },
        ),
        "foot_clearance": RewardTermCfg(
            func=mdp.feet_clearance,
            weight=-2.0,
            params={
                "height_sensor_name": "foot_height_scan",
                "target_height": 0.1,
                "command_name": "twist",
                "command_threshold": 0.05,
            },
        ),
        "foot_swing_height": RewardTermCfg(
            func=mdp.feet_swing_height,
            weight=-0.25,
            params={
                "sensor_name": "feet_ground_contact",
                "height_sensor_name": "foot_height_scan",
                "target_height": 0.1,
                "command_name": "twist",
                "command_threshold": 0.05,
            },
        ),
        "foot_slip": RewardTermCfg(
            func=mdp.feet_slip,
            weight=-0.1,
            params={
                "sensor_name": "feet_ground_contact",
                "command_name": "twist",
                "command_threshold": 0.05,
            },
        ),
        "soft_landing": RewardTermCfg(
            func=mdp.soft_landing,
            weight=-1e-5,
            params={
                "sensor_name": "feet_ground_contact",
                "command_name": "twist",
                "command_threshold": 0.05,
            },
        ),
        "self_collisions": RewardTermCfg(
            func=mdp.self_collision_cost,
            weight=-1.0,
            params={"sensor_name": "self_collision"},
        ),
    }


def _events() -> dict[str, EventTermCfg]:
    """Define resets and pushes."""
    return {
        "reset_base": EventTermCfg(
            func=mdp.reset_root_state_uniform,
            mode="reset",
            params={
                "pose_range": {
                    "x": (-0.5, 0.5),
                    "y": (-0.5, 0.5),
                    "z": (0.01, 0.05),
                    "yaw": (-3.14, 3.14),
                },
                "velocity_range": {},
            },
        ),
        "reset_robot_joints": EventTermCfg(
            func=mdp.reset_joints_by_offset,
            mode="reset",
            params={
                "position_range": (0.0, 0.0),
                "velocity_range": (0.0, 0.0),
                "asset_cfg": SceneEntityCfg("robot", joint_names=(".*",)),
            },
        ),
        "push_robot": EventTermCfg(
            func=mdp.push_by_setting_velocity,
            mode="interval",
            interval_range_s=(1.0, 3.0),
            params={
                "velocity_range": {
                    "x": (-0.5, 0.5),
                    "y": (-0.5, 0.5),
                    "z": (-0.4, 0.4),
                    "roll": (-0.52, 0.52),
                    "pitch": (-0.52, 0.52),
                    "yaw": (-0.78, 0.78),
                }
            },
        ),
    }


def _randomization(robot: LeggedRobot) -> dict[str, EventTermCfg]:
    """Define randomization: the encoders' bias, the trunk's mass, the feet's friction."""
    events = {
        "encoder_bias": EventTermCfg(
            func=dr.encoder_bias,
            mode="startup",
            params={"asset_cfg": SceneEntityCfg("robot"), "bias_range": (-0.015, 0.015)},
        ),
        "base_com": EventTermCfg(
            func=dr.body_com_offset,
            mode="startup",
            params={
                "asset_cfg": SceneEntityCfg("robot", body_names=(robot.trunk,)),
                "operation": "add",
                "ranges": {0: (-0.025, 0.025), 1: (-0.025, 0.025), 2: (-0.03, 0.03)},
            },
        ),
    }
    for name, params in robot.foot_friction.items():
        events[name] = EventTermCfg(
            func=dr.geom_friction,
            mode="startup",
            params={
                "asset_cfg": SceneEntityCfg("robot", geom_names=robot.foot_geoms),
                "operation": "abs",
                "shared_random": True,
                **params,
            },
        )
    return events


def _curriculum() -> dict[str, CurriculumTermCfg]:
    slow: mdp.VelocityStage = {"step": 0, "lin_vel_x": (-1.0, 1.0), "ang_vel_z": (-0.5, 0.5)}
    faster: mdp.VelocityStage = {
        "step": 5000 * _CONTROL_STEPS,
        "lin_vel_x": (-1.5, 2.0),
        "ang_vel_z": (-0.7, 0.7),
    }
    fast: mdp.VelocityStage = {"step": 10000 * _CONTROL_STEPS, "lin_vel_x": (-2.0, 3.0)}
    return {
        "terrain_levels": CurriculumTermCfg(
            func=mdp.terrain_levels_vel, params={"command_name": "twist"}
        ),
        "command_vel": CurriculumTermCfg(
            func=mdp.commands_vel,
            params={"command_name": "twist", "velocity_stages": [slow, faster, fast]},
        ),
    }
