"""Cube lifting task, for any arm that is described by an `Arm`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import mujoco

from manyworlds.entity import EntityCfg
from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.managers import (
    CurriculumTermCfg,
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationTermCfg,
)
from manyworlds.scene import SceneCfg
from manyworlds.sensor import CameraSensorCfg, ContactMatch, ContactSensorCfg
from manyworlds.signals import UniformNoiseCfg
from manyworlds.sim import MujocoCfg, SimulationCfg
from manyworlds.tasks.manipulation import mdp
from manyworlds.terrains import TerrainEntityCfg
from manyworlds.utils.viewer_config import ViewerConfig

CameraKind = Literal["rgb", "depth"]

CUBE_SIZE = 0.02
"""Half of the cube's edge length [m]."""
_FOREVER = 1e9  # longer than any episode [s]
_PLAY_WORLDS = 16
_PIXELS = 48
_CAMERA_POS = (0.85, 0.0, 0.5)  # in front of the robot, relative to its root [m]
_CAMERA_QUAT = (0.6124, 0.3536, 0.3536, 0.6124)  # toward the robot, 30 degrees down (wxyz)
_FARTHEST = 1.5  # [m]
_CUBE_X = 0.3  # position of cubes before the first command [m]
_CUBE_SPACING = 0.1  # between several cubes, along y [m]
_CUBE_COLORS = ((0.8, 0.2, 0.2, 1.0), (0.2, 0.6, 0.3, 1.0), (0.2, 0.4, 0.8, 1.0))


@dataclass(frozen=True, kw_only=True)
class Arm:
    """Description of an arm for the task; names are those of the arm's model."""

    entity: Callable[[], EntityCfg]
    """Function that returns the robot's configuration; its base is fixed."""
    action_scale: Mapping[str, float]
    """Position offset for an action of 1, by joint name [rad or m]."""
    root: str
    """Base body, x forward and z up, in front of which cameras are placed."""
    hand: str
    """Body whose subtree must not touch the ground."""
    grasp_site: str
    """Site between the fingertips."""
    fingertips: str
    """Regular expression of the geoms that touch a grasped object."""
    grasp: Mapping[str, float] = field(default_factory=dict)
    """Joint positions with the hand around an object on the ground [rad or m], from which settings
    for a few CPU cores compute start states."""
    closed: Mapping[str, float] = field(default_factory=dict)
    """Joint positions of the fingers that hold the cube [m], for the same purpose."""
    viewer: ViewerConfig = field(default_factory=ViewerConfig)


def get_cube_spec(
    cube_size: float = CUBE_SIZE,
    mass: float = 0.05,
    rgba: tuple[float, float, float, float] = _CUBE_COLORS[0],
) -> mujoco.MjSpec:
    """Create a cube with a free joint.

    Args:
        cube_size: half of the edge length [m].
        mass: mass [kg].
        rgba: color.
    """
    spec = mujoco.MjSpec()
    body = spec.worldbody.add_body(name="cube")
    body.add_freejoint(name="cube_joint")
    body.add_geom(
        name="cube_geom",
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=(cube_size,) * 3,
        mass=mass,
        rgba=rgba,
    )
    return spec


def cube_cfg(
    rgba: tuple[float, float, float, float] = _CUBE_COLORS[0], y: float = 0.0
) -> EntityCfg:
    """Return a cube in front of the robot, shifted to the left by `y` [m]."""
    pose = EntityCfg.InitialStateCfg(pos=(_CUBE_X, y, 0.02))
    return EntityCfg(spec_fn=lambda: get_cube_spec(rgba=rgba), init_state=pose)


def make_lift_cube_env_cfg() -> ManagerBasedRlEnvCfg:
    """Return the task without a robot; `lift_cube_env_cfg` adds one.

    The terms use entities "robot" and "cube" and a sensor "ee_ground_collision".
    """
    return ManagerBasedRlEnvCfg(
        decimation=4,
        episode_length_s=20.0,
        scene=SceneCfg(
            num_envs=4096,
            env_spacing=1.0,
            terrain=TerrainEntityCfg(),
            entities={"cube": cube_cfg()},
        ),
        sim=SimulationCfg(
            mujoco=MujocoCfg(
                timestep=0.005, impratio=10, cone="elliptic", iterations=10, ls_iterations=20
            )
        ),
        observations={
            "actor": ObservationGroupCfg(terms=_observation_terms(), enable_corruption=True),
            "critic": ObservationGroupCfg(terms=_observation_terms()),
        },
        actions={
            "joint_pos": mdp.JointPositionActionCfg(entity_name="robot", actuator_names=(".*",))
        },
        commands={
            "lift_height": mdp.LiftingCommandCfg(
                entity_name="cube",
                resampling_time_range=(8.0, 12.0),
                difficulty="dynamic",
                object_pose_range=mdp.LiftingCommandCfg.ObjectPoseRangeCfg(
                    x=(0.2, 0.4), y=(-0.2, 0.2)
                ),
                debug_vis=True,
            )
        },
        rewards=_rewards(),
        terminations={
            "time_out": TerminationTermCfg(func=mdp.time_out, time_out=True),
            "ee_ground_collision": TerminationTermCfg(
                func=mdp.illegal_contact,
                params={"sensor_name": "ee_ground_collision", "force_threshold": 10.0},
            ),
            "diverged": TerminationTermCfg(func=mdp.bad_world),
        },
        events=_events(),
        curriculum={
            "joint_vel_hinge_weight": CurriculumTermCfg(
                func=mdp.reward_curriculum,
                params={
                    "reward_name": "joint_vel_hinge",
                    "stages": [
                        {"step": 0, "weight": -0.01},
                        {"step": 12000, "weight": -0.1},
                        {"step": 24000, "weight": -1.0},
                    ],
                },
            )
        },
    )


def lift_cube_env_cfg(arm: Arm, play: bool = False) -> ManagerBasedRlEnvCfg:
    """Return the task of a robot that observes the cube's position.

    Args:
        arm: the robot.
        play: configure for playback: endless episodes and exact observations.
    """
    cfg = make_lift_cube_env_cfg()
    add_arm(cfg, arm)
    if play:
        prepare_for_play(cfg)
        cfg.scene.num_envs = _PLAY_WORLDS
    return cfg


def add_arm(cfg: ManagerBasedRlEnvCfg, arm: Arm) -> None:
    """Add an arm, its sensor and the randomization of its fingertips to the task."""
    cfg.scene.entities = {"robot": arm.entity(), **cfg.scene.entities}
    cfg.scene.sensors = (
        ContactSensorCfg(
            name="ee_ground_collision",
            primary=ContactMatch(mode="subtree", pattern=arm.hand, entity="robot"),
            secondary=ContactMatch(mode="body", pattern="terrain"),
            reduce="none",
            history_length=4,
        ),
    )
    cfg.viewer = copy.deepcopy(arm.viewer)
    action = cfg.actions["joint_pos"]
    assert isinstance(action, mdp.JointPositionActionCfg)
    action.scale = dict(arm.action_scale)
    cfg.rewards["lift"].params["asset_cfg"] = SceneEntityCfg("robot", site_names=(arm.grasp_site,))
    for group in cfg.observations.values():
        hand = SceneEntityCfg("robot", site_names=(arm.grasp_site,))
        group.terms["ee_to_cube"].params["asset_cfg"] = hand
    cfg.events |= fingertip_friction(arm.fingertips)


def lift_cube_vision_env_cfg(
    arm: Arm, cam_type: CameraKind, play: bool = False
) -> ManagerBasedRlEnvCfg:
    """Return the task of a robot that observes the cube with a camera in front of it.

    The critic observes the cube's position.

    Args:
        arm: the robot.
        cam_type: "rgb" for color images, "depth" for depth images.
        play: see `lift_cube_env_cfg`.
    """
    cfg = lift_cube_env_cfg(arm, play)
    observe_images(cfg, arm, cam_type)
    return cfg


def observe_images(cfg: ManagerBasedRlEnvCfg, arm: Arm, cam_type: CameraKind) -> None:
    """Let the actor of an arm's task observe the cube by a camera; `lift_cube_vision_env_cfg`."""
    _add_camera(cfg, arm, cam_type)
    if cam_type == "depth":
        image = ObservationTermCfg(
            func=mdp.camera_depth,
            params={"sensor_name": "front", "cutoff_distance": _FARTHEST},
        )
    else:
        image = ObservationTermCfg(func=mdp.camera_rgb, params={"sensor_name": "front"})
    cfg.observations["camera"] = ObservationGroupCfg(terms={cam_type: image})


def multi_cube_seg_env_cfg(
    arm: Arm, num_cubes: int = 3, play: bool = False
) -> ManagerBasedRlEnvCfg:
    """Return the task of lifting one of several cubes, which a camera image marks.

    Args:
        arm: the robot.
        num_cubes: number of cubes, at least 2.
        play: see `lift_cube_env_cfg`.

    Raises:
        ValueError: `num_cubes` is less than 2.
    """
    cfg = lift_cube_env_cfg(arm, play)
    add_cubes(cfg, arm, num_cubes)
    return cfg


def add_cubes(cfg: ManagerBasedRlEnvCfg, arm: Arm, num_cubes: int) -> None:
    """Replace the cube of an arm's task by several; see `multi_cube_seg_env_cfg`.

    Raises:
        ValueError: `num_cubes` is less than 2.
    """
    if num_cubes < 2:
        raise ValueError(f"The task chooses between cubes: give num_cubes >= 2, not {num_cubes}.")
    del cfg.scene.entities["cube"]
    names = tuple(f"cube_{i}" for i in range(num_cubes))
    for i, name in enumerate(names):
        color = _CUBE_COLORS[i % len(_CUBE_COLORS)]
        y = _CUBE_SPACING * (i - (num_cubes - 1) / 2)
        cfg.scene.entities[name] = cube_cfg(color, y)
    lift = cfg.commands["lift_height"]
    cfg.commands["lift_height"] = mdp.MultiCubeLiftingCommandCfg(
        entity_names=names,
        resampling_time_range=lift.resampling_time_range,
        difficulty="dynamic",
        debug_vis=True,
    )
    _name_cube_by_command(cfg)
    _add_camera(cfg, arm, "segmentation")
    mask = ObservationTermCfg(
        func=mdp.camera_target_cube_mask,
        params={"sensor_name": "front", "command_name": "lift_height"},
    )
    cfg.observations["camera"] = ObservationGroupCfg(terms={"mask": mask})


def _name_cube_by_command(cfg: ManagerBasedRlEnvCfg) -> None:
    """Let rewards and observations refer to the cube that the command selects."""
    lift = cfg.rewards["lift"]
    lift.func = mdp.multi_cube_staged_position_reward
    del lift.params["object_name"]
    lift_precise = cfg.rewards["lift_precise"]
    lift_precise.func = mdp.multi_cube_bring_object_reward
    del lift_precise.params["object_name"]
    for group in cfg.observations.values():
        hand = group.terms["ee_to_cube"].params["asset_cfg"]
        group.terms["ee_to_cube"] = ObservationTermCfg(
            func=mdp.ee_to_target_object,
            params={"command_name": "lift_height", "asset_cfg": hand},
        )
        group.terms["cube_to_goal"] = ObservationTermCfg(
            func=mdp.target_object_to_goal,
            params={"command_name": "lift_height"},
        )


def _add_camera(
    cfg: ManagerBasedRlEnvCfg, arm: Arm, kind: Literal["rgb", "depth", "segmentation"]
) -> None:
    """Replace the actor's observations of cubes, except the goal, by an image."""
    cfg.scene.sensors = (
        *cfg.scene.sensors,
        CameraSensorCfg(
            name="front",
            parent_body=f"robot/{arm.root}",
            pos=_CAMERA_POS,
            quat=_CAMERA_QUAT,
            fovy=50.0,
            width=_PIXELS,
            height=_PIXELS,
            data_types=(kind,),
            use_textures=False,
        ),
    )
    actor = cfg.observations["actor"]
    del actor.terms["ee_to_cube"]
    del actor.terms["cube_to_goal"]
    actor.terms["goal"] = ObservationTermCfg(
        func=mdp.target_position, params={"command_name": "lift_height"}
    )


def prepare_for_play(cfg: ManagerBasedRlEnvCfg) -> None:
    """Configure an arm's task for playback; see `lift_cube_env_cfg`."""
    cfg.episode_length_s = _FOREVER
    cfg.curriculum = {}
    cfg.observations["actor"].enable_corruption = False


def _observation_terms() -> dict[str, ObservationTermCfg]:
    """Define the terms of a group; their noise has an effect where it enables corruption."""
    return {
        "joint_pos": ObservationTermCfg(
            func=mdp.joint_pos_rel,
            noise=UniformNoiseCfg(n_min=-0.01, n_max=0.01),
        ),
        "joint_vel": ObservationTermCfg(
            func=mdp.joint_vel_rel,
            noise=UniformNoiseCfg(n_min=-1.5, n_max=1.5),
        ),
        "ee_to_cube": ObservationTermCfg(
            func=mdp.ee_to_object_distance,
            params={"object_name": "cube"},
            noise=UniformNoiseCfg(n_min=-0.01, n_max=0.01),
        ),
        "cube_to_goal": ObservationTermCfg(
            func=mdp.object_to_goal_distance,
            params={"object_name": "cube", "command_name": "lift_height"},
            noise=UniformNoiseCfg(n_min=-0.01, n_max=0.01),
        ),
        "actions": ObservationTermCfg(func=mdp.last_action),
    }


def _rewards() -> dict[str, RewardTermCfg]:
    return {
        "lift": RewardTermCfg(
            func=mdp.staged_position_reward,
            weight=1.0,
            params={
                "command_name": "lift_height",
                "object_name": "cube",
                "reaching_std": 0.2,
                "bringing_std": 0.3,
            },
        ),
        "lift_precise": RewardTermCfg(
            func=mdp.bring_object_reward,
            weight=1.0,
            params={"command_name": "lift_height", "object_name": "cube", "std": 0.05},
        ),
        "action_rate_l2": RewardTermCfg(func=mdp.action_rate_l2, weight=-0.01),
        "joint_pos_limits": RewardTermCfg(
            func=mdp.joint_pos_limits,
            weight=-10.0,
            params={"asset_cfg": SceneEntityCfg("robot", joint_names=(".*",))},
        ),
        "joint_vel_hinge": RewardTermCfg(
            func=mdp.joint_velocity_hinge_penalty,
            weight=-0.01,
            params={
                "max_vel": 0.5,
                "asset_cfg": SceneEntityCfg("robot", joint_names=(".*",)),
            },
        ),
    }


def _events() -> dict[str, EventTermCfg]:
    """Define resets; randomization of the robot is added by the robot's task."""
    return {
        "reset_base": EventTermCfg(
            func=mdp.reset_root_state_uniform, mode="reset", params={"pose_range": {}}
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
    }


def fingertip_friction(fingertips: str | tuple[str, ...]) -> dict[str, EventTermCfg]:
    """Randomize sliding, spinning and rolling friction of the fingertips per world."""
    return {
        "fingertip_friction_slide": EventTermCfg(
            func=mdp.dr.geom_friction,
            mode="startup",
            params={
                "asset_cfg": SceneEntityCfg("robot", geom_names=fingertips),
                "operation": "abs",
                "distribution": "uniform",
                "axes": (0,),
                "ranges": (0.3, 1.5),
            },
        ),
        "fingertip_friction_spin": EventTermCfg(
            func=mdp.dr.geom_friction,
            mode="startup",
            params={
                "asset_cfg": SceneEntityCfg("robot", geom_names=fingertips),
                "operation": "abs",
                "distribution": "log_uniform",
                "axes": (1,),
                "ranges": (1e-4, 2e-2),
            },
        ),
        "fingertip_friction_roll": EventTermCfg(
            func=mdp.dr.geom_friction,
            mode="startup",
            params={
                "asset_cfg": SceneEntityCfg("robot", geom_names=fingertips),
                "operation": "abs",
                "distribution": "log_uniform",
                "axes": (2,),
                "ranges": (1e-5, 5e-3),
            },
        ),
    }
