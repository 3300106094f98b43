"""Tracking task, for any robot that is described by a `TrackedRobot`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from manyworlds.entity import EntityCfg
from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.envs.mdp import dr
from manyworlds.managers import (
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationTermCfg,
)
from manyworlds.scene import SceneCfg
from manyworlds.sensor import ContactMatch, ContactSensorCfg
from manyworlds.signals import UniformNoiseCfg
from manyworlds.sim import MujocoCfg, SimulationCfg
from manyworlds.tasks.tracking import mdp
from manyworlds.tasks.tracking.motion import Motion
from manyworlds.terrains import TerrainEntityCfg
from manyworlds.utils.viewer_config import ViewerConfig

_FOREVER = 1e9  # longer than any episode [s]
_PLAY_WORLDS = 16

VELOCITY_RANGE: dict[str, tuple[float, float]] = {
    "x": (-0.5, 0.5),
    "y": (-0.5, 0.5),
    "z": (-0.2, 0.2),
    "roll": (-0.52, 0.52),
    "pitch": (-0.52, 0.52),
    "yaw": (-0.78, 0.78),
}
"""Bounds of the initial noise on the root's velocity, and of pushes [m/s, rad/s]."""


@dataclass(frozen=True, kw_only=True)
class TrackedRobot:
    """Description of a robot for the task; names are those of the robot's model.

    The model has the sensors `imu_lin_vel` and `imu_ang_vel`.
    """

    entity: Callable[[], EntityCfg]
    """Function that returns the robot's configuration."""
    action_scale: Mapping[str, float]
    """Position offset for an action of 1, by joint name [rad]."""
    motion: Callable[[], Motion]
    """Function that returns the motion that is tracked if no file is given."""
    root: str
    """Body whose subtree must not collide with itself."""
    anchor: str
    """Body at which motion and robot are aligned."""
    bodies: tuple[str, ...]
    """Names of the tracked bodies."""
    extremities: tuple[str, ...]
    """Tracked bodies whose height errors end episodes."""
    foot_geoms: str
    """Regular expression of the feet's geoms, whose friction is randomized."""
    relative_actions: bool = False
    """Add actions to the motion's joint positions instead of the robot's initial ones. Untrained
    episodes are then three times as long, so that balance is learned from the start."""
    viewer: ViewerConfig = field(default_factory=ViewerConfig)
    mujoco: MujocoCfg = field(default_factory=MujocoCfg)


def make_tracking_env_cfg() -> ManagerBasedRlEnvCfg:
    """Return the task without a robot and a motion; `with_robot` adds them.

    The terms use an entity "robot" and a sensor "self_collision".
    """
    return ManagerBasedRlEnvCfg(
        decimation=4,
        episode_length_s=10.0,
        scene=SceneCfg(num_envs=4096, terrain=TerrainEntityCfg()),
        sim=SimulationCfg(mujoco=MujocoCfg(timestep=0.005, iterations=10, ls_iterations=20)),
        observations=_observations(),
        actions={
            "joint_pos": mdp.JointPositionActionCfg(entity_name="robot", actuator_names=(".*",))
        },
        commands={
            "motion": mdp.MotionCommandCfg(
                entity_name="robot",
                resampling_time_range=(_FOREVER, _FOREVER),
                debug_vis=True,
                motion_file="",
                anchor_body_name="",
                body_names=(),
                pose_range={
                    "x": (-0.05, 0.05),
                    "y": (-0.05, 0.05),
                    "z": (-0.01, 0.01),
                    "roll": (-0.1, 0.1),
                    "pitch": (-0.1, 0.1),
                    "yaw": (-0.2, 0.2),
                },
                velocity_range=dict(VELOCITY_RANGE),
                joint_position_range=(-0.1, 0.1),
            )
        },
        rewards=_rewards(),
        terminations=_terminations(),
        events=_events(),
    )


def with_robot(
    robot: TrackedRobot, has_state_estimation: bool = True, play: bool = False
) -> ManagerBasedRlEnvCfg:
    """Return the task of a robot.

    Args:
        robot: the robot.
        has_state_estimation: include the anchor's position and the linear velocity in the actor's
            observations; without, they are measurements of the robot's own sensors only.
        play: configure for playback: endless episodes from the first frame, exact observations,
            no pushes.
    """
    cfg = make_tracking_env_cfg()
    add_robot(cfg, robot)
    if not has_state_estimation:
        remove_state_estimation(cfg)
    if play:
        prepare_for_play(cfg)
        cfg.scene.num_envs = _PLAY_WORLDS
    return cfg


def add_robot(cfg: ManagerBasedRlEnvCfg, robot: TrackedRobot) -> None:
    """Add a robot, its motion and its names to the task."""
    cfg.scene.entities = {"robot": robot.entity()}
    cfg.scene.sensors = (
        ContactSensorCfg(
            name="self_collision",
            primary=ContactMatch(mode="subtree", pattern=robot.root, entity="robot"),
            secondary=ContactMatch(mode="subtree", pattern=robot.root, entity="robot"),
            reduce="none",
            history_length=4,
        ),
    )
    cfg.sim.mujoco = copy.deepcopy(robot.mujoco)
    cfg.viewer = copy.deepcopy(robot.viewer)
    action_cfg = mdp.JointPositionActionCfg
    if robot.relative_actions:
        action_cfg = mdp.MotionJointPositionActionCfg
    cfg.actions["joint_pos"] = action_cfg(
        entity_name="robot", actuator_names=(".*",), scale=dict(robot.action_scale)
    )
    command = cfg.commands["motion"]
    assert isinstance(command, mdp.MotionCommandCfg)
    command.motion_fn = robot.motion
    command.anchor_body_name = robot.anchor
    command.body_names = robot.bodies
    cfg.terminations["ee_body_pos"].params["body_names"] = robot.extremities
    anchor = SceneEntityCfg("robot", body_names=(robot.anchor,))
    feet = SceneEntityCfg("robot", geom_names=(robot.foot_geoms,))
    cfg.events["base_com"].params["asset_cfg"] = anchor
    cfg.events["foot_friction"].params["asset_cfg"] = feet


def remove_state_estimation(cfg: ManagerBasedRlEnvCfg) -> None:
    """Remove the actor's observations that are not measurements of the robot's own sensors."""
    terms = cfg.observations["actor"].terms
    del terms["motion_anchor_pos_b"]
    del terms["base_lin_vel"]


def prepare_for_play(cfg: ManagerBasedRlEnvCfg) -> None:
    """Configure the task of a robot for playback; see `with_robot`."""
    cfg.episode_length_s = _FOREVER
    cfg.observations["actor"].enable_corruption = False
    del cfg.events["push_robot"]
    command = cfg.commands["motion"]
    assert isinstance(command, mdp.MotionCommandCfg)
    command.pose_range = {}
    command.velocity_range = {}
    command.joint_position_range = (0.0, 0.0)
    command.sampling_mode = "start"


def _observations() -> dict[str, ObservationGroupCfg]:
    """Define observations: measurements, with noise for the actor; bodies for the critic."""
    actor_terms = {
        "command": ObservationTermCfg(
            func=mdp.generated_commands, params={"command_name": "motion"}
        ),
        "motion_anchor_pos_b": ObservationTermCfg(
            func=mdp.motion_anchor_pos_b,
            params={"command_name": "motion"},
            noise=UniformNoiseCfg(n_min=-0.25, n_max=0.25),
        ),
        "motion_anchor_ori_b": ObservationTermCfg(
            func=mdp.motion_anchor_ori_b,
            params={"command_name": "motion"},
            noise=UniformNoiseCfg(n_min=-0.05, n_max=0.05),
        ),
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
        "joint_pos": ObservationTermCfg(
            func=mdp.joint_pos_rel,
            params={"biased": True},
            noise=UniformNoiseCfg(n_min=-0.01, n_max=0.01),
        ),
        "joint_vel": ObservationTermCfg(
            func=mdp.joint_vel_rel,
            noise=UniformNoiseCfg(n_min=-0.5, n_max=0.5),
        ),
        "actions": ObservationTermCfg(func=mdp.last_action),
    }
    critic_terms = {
        "command": ObservationTermCfg(
            func=mdp.generated_commands, params={"command_name": "motion"}
        ),
        "motion_anchor_pos_b": ObservationTermCfg(
            func=mdp.motion_anchor_pos_b, params={"command_name": "motion"}
        ),
        "motion_anchor_ori_b": ObservationTermCfg(
            func=mdp.motion_anchor_ori_b, params={"command_name": "motion"}
        ),
        "body_pos": ObservationTermCfg(
            func=mdp.robot_body_pos_b, params={"command_name": "motion"}
        ),
        "body_ori": ObservationTermCfg(
            func=mdp.robot_body_ori_b, params={"command_name": "motion"}
        ),
        "base_lin_vel": ObservationTermCfg(
            func=mdp.builtin_sensor, params={"sensor_name": "robot/imu_lin_vel"}
        ),
        "base_ang_vel": ObservationTermCfg(
            func=mdp.builtin_sensor, params={"sensor_name": "robot/imu_ang_vel"}
        ),
        "joint_pos": ObservationTermCfg(func=mdp.joint_pos_rel),
        "joint_vel": ObservationTermCfg(func=mdp.joint_vel_rel),
        "actions": ObservationTermCfg(func=mdp.last_action),
    }
    return {
        "actor": ObservationGroupCfg(terms=actor_terms, enable_corruption=True),
        "critic": ObservationGroupCfg(terms=critic_terms),
    }


def _rewards() -> dict[str, RewardTermCfg]:
    return {
        "motion_global_root_pos": RewardTermCfg(
            func=mdp.motion_global_anchor_position_error_exp,
            weight=0.5,
            params={"command_name": "motion", "std": 0.3},
        ),
        "motion_global_root_ori": RewardTermCfg(
            func=mdp.motion_global_anchor_orientation_error_exp,
            weight=0.5,
            params={"command_name": "motion", "std": 0.4},
        ),
        "motion_body_pos": RewardTermCfg(
            func=mdp.motion_relative_body_position_error_exp,
            weight=1.0,
            params={"command_name": "motion", "std": 0.3},
        ),
        "motion_body_ori": RewardTermCfg(
            func=mdp.motion_relative_body_orientation_error_exp,
            weight=1.0,
            params={"command_name": "motion", "std": 0.4},
        ),
        "motion_body_lin_vel": RewardTermCfg(
            func=mdp.motion_global_body_linear_velocity_error_exp,
            weight=1.0,
            params={"command_name": "motion", "std": 1.0},
        ),
        "motion_body_ang_vel": RewardTermCfg(
            func=mdp.motion_global_body_angular_velocity_error_exp,
            weight=1.0,
            params={"command_name": "motion", "std": 3.14},
        ),
        "action_rate_l2": RewardTermCfg(func=mdp.action_rate_l2, weight=-0.1),
        "joint_limit": RewardTermCfg(
            func=mdp.joint_pos_limits,
            weight=-10.0,
            params={"asset_cfg": SceneEntityCfg("robot", joint_names=(".*",))},
        ),
        "self_collisions": RewardTermCfg(
            func=mdp.self_collision_cost,
            weight=-10.0,
            params={"sensor_name": "self_collision", "force_threshold": 10.0},
        ),
    }


def _terminations() -> dict[str, TerminationTermCfg]:
    return {
        "time_out": TerminationTermCfg(func=mdp.time_out, time_out=True),
        "anchor_pos": TerminationTermCfg(
            func=mdp.bad_anchor_pos_z_only,
            params={"command_name": "motion", "threshold": 0.25},
        ),
        "anchor_ori": TerminationTermCfg(
            func=mdp.bad_anchor_ori,
            params={
                "asset_cfg": SceneEntityCfg("robot"),
                "command_name": "motion",
                "threshold": 0.8,
            },
        ),
        "ee_body_pos": TerminationTermCfg(
            func=mdp.bad_motion_body_pos_z_only,
            params={"command_name": "motion", "threshold": 0.25, "body_names": ()},
        ),
        "diverged": TerminationTermCfg(func=mdp.bad_world),
    }


def _events() -> dict[str, EventTermCfg]:
    """Define pushes and randomization: the anchor's mass, encoder bias, and foot friction."""
    return {
        "push_robot": EventTermCfg(
            func=mdp.push_by_setting_velocity,
            mode="interval",
            interval_range_s=(1.0, 3.0),
            params={"velocity_range": dict(VELOCITY_RANGE)},
        ),
        "base_com": EventTermCfg(
            func=dr.body_com_offset,
            mode="startup",
            params={
                "operation": "add",
                "ranges": {0: (-0.025, 0.025), 1: (-0.05, 0.05), 2: (-0.05, 0.05)},
            },
        ),
        "encoder_bias": EventTermCfg(
            func=dr.encoder_bias,
            mode="startup",
            params={"asset_cfg": SceneEntityCfg("robot"), "bias_range": (-0.01, 0.01)},
        ),
        "foot_friction": EventTermCfg(
            func=dr.geom_friction,
            mode="startup",
            params={"operation": "abs", "ranges": (0.3, 1.2), "shared_random": True},
        ),
    }
