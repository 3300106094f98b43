"""Velocity task of many generated robots at once: one policy for all of them.

Sixteen robots learn, and four others, which the policy has never seen, evaluate it. Rewards,
observations and terminations name no joint: they hold for any number of legs and joints.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from manyworlds.asset_zoo.generated_legged import (
    FOOT_GEOMS,
    FOOT_SITES,
    TRUNK_GEOM,
    drawn_robot_cfg,
)
from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.envs.mdp import dr, is_terminated, joint_tokens, reward_curriculum
from manyworlds.managers import (
    CurriculumTermCfg,
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationTermCfg,
)
from manyworlds.rl.config import (
    JOINT_ACTOR,
    JOINT_CRITIC,
    RslRlModelCfg,
    RslRlOnPolicyRunnerCfg,
    RslRlPpoAlgorithmCfg,
    masked_gaussian_distribution,
)
from manyworlds.scene import SceneCfg
from manyworlds.sensor import ContactMatch, ContactSensorCfg
from manyworlds.signals import UniformNoiseCfg
from manyworlds.sim import MujocoCfg
from manyworlds.tasks.velocity import mdp
from manyworlds.tasks.velocity.velocity_env_cfg import flatten, make_velocity_env_cfg
from manyworlds.terrains import TerrainEntityCfg

TRAINED = range(16)
"""Numbers of the robots that learn."""
HELD_OUT = range(16, 20)
"""Numbers of the robots that evaluate the policy only."""

_WORLDS = 512
_PLAY_WORLDS = 20
_FOREVER = 1e9  # longer than any episode [s]
_ACTION_SCALE = 0.35  # [rad]
# Of tokens: noise of positions and velocities; what does not move is known.
_TOKEN_NOISE = (*(0.0,) * 12, 0.01, 0.5, 0.0)


def legged_flat_env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the task of the robots that learn."""
    return robots_env_cfg(TRAINED, play=play)


def legged_held_out_env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the task of the robots that evaluate the policy only."""
    return robots_env_cfg(HELD_OUT, play=play)


def robots_env_cfg(
    numbers: Sequence[int], seed: int = 0, play: bool = False
) -> ManagerBasedRlEnvCfg:
    """Return the task of some generated robots, each in a bucket of its own.

    Args:
        numbers: numbers of the robots; see `draw_robot`.
        seed: seed of the robots.
        play: configure for playback: endless episodes, exact observations and no pushes.
    """
    buckets = {f"robot{number}": robot_scene(number, seed) for number in numbers}
    return _env_cfg(SceneCfg(buckets=buckets, merge_buckets=True), play)


def robot_env_cfg(number: int, seed: int = 0, play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the task of one generated robot alone, without padding; see `robots_env_cfg`."""
    return _env_cfg(robot_scene(number, seed), play)


def _env_cfg(scene: SceneCfg, play: bool) -> ManagerBasedRlEnvCfg:
    """Return the task of a scene, or of its buckets; see `robots_env_cfg`."""
    cfg = make_velocity_env_cfg()
    flatten(cfg)
    cfg.scene = scene
    cfg.scene.num_envs = _WORLDS
    # Few iterations of projected Gauss-Seidel are enough for feet that touch the ground in points.
    cfg.sim.mujoco = MujocoCfg(
        timestep=0.01, solver="pgs", iterations=8, disableflags=("island", "midphase")
    )
    cfg.decimation = 2
    cfg.observations = _observations()
    action = cfg.actions["joint_pos"]
    assert isinstance(action, mdp.JointPositionActionCfg)
    action.scale = _ACTION_SCALE
    command = cfg.commands["twist"]
    assert isinstance(command, mdp.UniformVelocityCommandCfg)
    command.resampling_time_range = (2.0, 6.0)
    command.ranges.lin_vel_x = (-0.5, 0.8)
    command.ranges.lin_vel_y = (-0.2, 0.2)
    command.ranges.ang_vel_z = (-0.6, 0.6)
    cfg.rewards = _rewards()
    cfg.terminations["trunk_contact"] = TerminationTermCfg(
        func=mdp.illegal_contact, params={"sensor_name": "trunk_ground_contact"}
    )
    cfg.events["foot_friction"] = EventTermCfg(
        func=dr.geom_friction,
        mode="startup",
        params={
            "asset_cfg": SceneEntityCfg("robot", geom_names=FOOT_GEOMS),
            "operation": "abs",
            "shared_random": True,
            "axes": (0,),
            "ranges": (0.5, 1.2),
        },
    )
    cfg.events["push_robot"].params["velocity_range"] = {
        "x": (-0.3, 0.3),
        "y": (-0.3, 0.3),
        "yaw": (-0.4, 0.4),
    }
    # A policy that must not fall before it can step learns to stand still.
    falls = ((0, 0.0), (2400, -50.0), (6000, -100.0))
    cfg.curriculum = {
        "is_terminated_weight": CurriculumTermCfg(
            func=reward_curriculum,
            params={
                "reward_name": "is_terminated",
                "stages": [{"step": step, "weight": weight} for step, weight in falls],
            },
        )
    }
    if play:
        cfg.episode_length_s = _FOREVER
        for group in cfg.observations.values():
            group.enable_corruption = False
        del cfg.events["push_robot"]
        cfg.curriculum = {}
        cfg.scene.num_envs = _PLAY_WORLDS
    return cfg


def robot_scene(number: int, seed: int = 0) -> SceneCfg:
    """Return the scene of a generated robot on a plane, with its contact sensors."""
    return SceneCfg(
        terrain=TerrainEntityCfg(),
        entities={"robot": drawn_robot_cfg(number, seed)},
        sensors=(
            ContactSensorCfg(
                name="feet_ground_contact",
                primary=ContactMatch(mode="geom", pattern=FOOT_GEOMS, entity="robot"),
                secondary=ContactMatch(mode="body", pattern="terrain"),
                reduce="netforce",
                track_air_time=True,
            ),
            ContactSensorCfg(
                name="trunk_ground_contact",
                primary=ContactMatch(mode="geom", pattern=TRUNK_GEOM, entity="robot"),
                secondary=ContactMatch(mode="body", pattern="terrain"),
                reduce="none",
            ),
        ),
        kept_sensors=("robot/imu_ang_vel", "robot/imu_lin_vel"),
    )


def _observations() -> dict[str, ObservationGroupCfg]:
    """Define observations of the robot and of its joints, with noise for the actor."""
    return {
        "actor": ObservationGroupCfg(terms=_robot_terms(), enable_corruption=True),
        "actor_joints": ObservationGroupCfg(terms=_joint_terms(), enable_corruption=True),
        "critic": ObservationGroupCfg(terms=_robot_terms()),
        "critic_joints": ObservationGroupCfg(terms=_joint_terms()),
    }


def _robot_terms() -> dict[str, ObservationTermCfg]:
    """Define observations of a robot as a whole."""
    return {
        "base_lin_vel": ObservationTermCfg(
            func=mdp.builtin_sensor,
            params={"sensor_name": "robot/imu_lin_vel"},
            noise=UniformNoiseCfg(n_min=-0.1, n_max=0.1),
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
        "command": ObservationTermCfg(
            func=mdp.generated_commands, params={"command_name": "twist"}
        ),
    }


def _joint_terms() -> dict[str, ObservationTermCfg]:
    """Define the tokens of joints, with noise of what they measure."""
    low = tuple(-bound for bound in _TOKEN_NOISE)
    noise = UniformNoiseCfg(n_min=low, n_max=_TOKEN_NOISE)
    return {"tokens": ObservationTermCfg(func=joint_tokens, noise=noise)}


def _rewards() -> dict[str, RewardTermCfg]:
    """Define rewards that hold for any number of legs and joints."""
    moving = {"sensor_name": "feet_ground_contact", "command_name": "twist"}
    return {
        "track_linear_velocity": RewardTermCfg(
            func=mdp.track_linear_velocity,
            weight=2.0,
            params={"command_name": "twist", "std": math.sqrt(0.1)},
        ),
        "track_angular_velocity": RewardTermCfg(
            func=mdp.track_angular_velocity,
            weight=2.0,
            params={"command_name": "twist", "std": math.sqrt(0.5)},
        ),
        "command_progress": RewardTermCfg(
            func=mdp.command_progress, weight=3.0, params={"command_name": "twist"}
        ),
        "turn_error": RewardTermCfg(
            func=mdp.turn_error, weight=-1.5, params={"command_name": "twist"}
        ),
        "upright": RewardTermCfg(func=mdp.upright, weight=1.0, params={"std": math.sqrt(0.2)}),
        "pose": RewardTermCfg(
            func=mdp.variable_posture,
            weight=1.0,
            params={
                "command_name": "twist",
                "asset_cfg": SceneEntityCfg("robot", joint_names=(".*",)),
                "walking_threshold": 0.05,
                "std_standing": {".*": 0.1},
                "std_walking": {".*": 0.4},
                "std_running": {".*": 0.4},
            },
        ),
        "air_time": RewardTermCfg(
            func=mdp.feet_air_time,
            weight=1.0,
            params={**moving, "command_threshold": 0.1, "mean": True},
        ),
        "foot_slip": RewardTermCfg(
            func=mdp.feet_slip,
            weight=-0.05,
            params={
                **moving,
                "command_threshold": 0.05,
                "asset_cfg": SceneEntityCfg("robot", site_names=(FOOT_SITES,)),
            },
        ),
        "dof_pos_limits": RewardTermCfg(func=mdp.joint_pos_limits, weight=-1.0),
        "action_rate_l2": RewardTermCfg(func=mdp.action_rate_l2, weight=-0.01),
        "is_terminated": RewardTermCfg(func=is_terminated, weight=0.0),
    }


def legged_ppo_runner_cfg() -> RslRlOnPolicyRunnerCfg:
    """Return the PPO settings of a policy that all joints share."""
    return RslRlOnPolicyRunnerCfg(
        experiment_name="legged_velocity",
        obs_groups={"actor": ("actor", "actor_joints"), "critic": ("critic", "critic_joints")},
        actor=RslRlModelCfg(
            class_name=JOINT_ACTOR,
            hidden_dims=(64, 64),
            activation="relu",  # as good as others here, and cheaper
            obs_normalization=True,
            distribution_cfg={**masked_gaussian_distribution(shared_std=True), "init_std": 0.45},
        ),
        critic=RslRlModelCfg(
            class_name=JOINT_CRITIC,
            hidden_dims=(64, 128, 128),
            activation="relu",
            obs_normalization=True,
        ),
        algorithm=RslRlPpoAlgorithmCfg(
            gamma=0.97,
            desired_kl=0.015,
            entropy_coef=0.005,
            use_clipped_value_loss=False,
            num_learning_epochs=4,
            averaged_iterations=20.0,
        ),
        num_steps_per_env=12,
        max_iterations=3000,
    )
