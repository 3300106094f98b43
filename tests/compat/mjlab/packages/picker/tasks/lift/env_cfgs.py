"""Lifting environments."""

import math
from copy import deepcopy

import mujoco
from mjlab.entity import EntityCfg
from mjlab.envs import ManagerBasedRlEnvCfg
from mjlab.envs.mdp import dr
from mjlab.envs.mdp.actions import JointPositionActionCfg
from mjlab.managers.curriculum_manager import CurriculumTermCfg
from mjlab.managers.event_manager import EventTermCfg
from mjlab.managers.metrics_manager import MetricsTermCfg
from mjlab.managers.observation_manager import ObservationGroupCfg, ObservationTermCfg
from mjlab.managers.recorder_manager import RecorderTermCfg
from mjlab.managers.reward_manager import RewardTermCfg
from mjlab.managers.scene_entity_config import SceneEntityCfg
from mjlab.sensor import CameraSensorCfg, ContactSensorCfg
from mjlab.tasks.manipulation.lift_cube_env_cfg import make_lift_cube_env_cfg
from mjlab.tasks.manipulation.mdp import LiftingCommandCfg

from picker.arm import ARM_ACTION_SCALE, get_arm_cfg

from . import mdp


def get_cube_spec(half_size: float = 0.02, mass: float = 0.05) -> mujoco.MjSpec:
    """Make the cube."""
    spec = mujoco.MjSpec()
    body = spec.worldbody.add_body(name="cube")
    body.add_freejoint(name="cube_joint")
    body.add_geom(
        name="cube_geom",
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=(half_size,) * 3,
        mass=mass,
        rgba=(0.8, 0.2, 0.2, 1.0),
    )
    return spec


def _randomization() -> dict[str, EventTermCfg]:
    joints = SceneEntityCfg("robot", joint_names=("joint.*",))
    return {
        "gains": EventTermCfg(
            mode="startup",
            func=dr.pd_gains,
            params={
                "asset_cfg": SceneEntityCfg("robot", actuator_names=(".*",)),
                "kp_range": (0.9, 1.1),
                "kd_range": (0.8, 1.2),
                "operation": "scale",
            },
        ),
        "joint_damping": EventTermCfg(
            mode="reset",
            func=dr.joint_damping,
            params={"ranges": (0.8, 1.25), "asset_cfg": joints, "operation": "scale"},
            min_step_count_between_reset=5,
        ),
        "joint_friction": EventTermCfg(
            mode="startup",
            func=dr.dof_frictionloss,
            params={
                "ranges": {"joint[12]": (0.0, 0.1), "joint5": (0.0, 0.02)},
                "asset_cfg": joints,
            },
        ),
    }


def _cube_randomization() -> dict[str, EventTermCfg]:
    return {
        "cube_inertia": EventTermCfg(
            mode="startup",
            func=dr.pseudo_inertia,
            params={
                "asset_cfg": SceneEntityCfg("cube", body_names=("cube",)),
                "alpha_range": (-0.2, 0.2),
            },
        ),
        "cube_size": EventTermCfg(
            mode="startup",
            func=dr.geom_size,
            params={
                "asset_cfg": SceneEntityCfg("cube", geom_names=("cube_geom",)),
                "ranges": (0.9, 1.1),
                "operation": "scale",
                "shared_random": True,
            },
        ),
        "cube_color": EventTermCfg(
            mode="startup",
            func=dr.geom_rgba,
            params={
                "asset_cfg": SceneEntityCfg("cube", geom_names=(".*",)),
                "ranges": {0: (0.4, 1.0), 1: (0.0, 0.6), 2: (0.0, 0.6)},
                "operation": "abs",
            },
        ),
        "grasp_site": EventTermCfg(
            mode="startup",
            func=dr.site_pos,
            params={
                "asset_cfg": SceneEntityCfg("robot", site_names=("grasp_site",)),
                "ranges": (-0.002, 0.002),
                "operation": "add",
                "distribution": "gaussian",
                "axes": [2],
            },
        ),
    }


def _set_terms(cfg: ManagerBasedRlEnvCfg) -> None:
    assert isinstance(cfg.actions["joint_pos"], JointPositionActionCfg)
    cfg.actions = {
        "arm": mdp.SmoothActionCfg(
            entity_name="robot",
            actuator_names=("joint[1-5]",),
            scale=ARM_ACTION_SCALE,
            alpha=0.7,
        ),
        "gripper": mdp.GripperActionCfg(
            entity_name="robot", joint_name="left_finger", open_pos=0.035, closed_pos=0.0
        ),
    }

    grasp = SceneEntityCfg("robot", site_names=("grasp_site",))
    for group in cfg.observations.values():
        group.terms["ee_to_cube"].params["asset_cfg"].site_names = ("grasp_site",)
        group.terms["actions"] = ObservationTermCfg(
            func=mdp.last_action, params={"action_name": "arm"}
        )
    cfg.observations["critic"].terms["ee_velocity"] = ObservationTermCfg(
        func=mdp.ee_velocity, params={"asset_cfg": deepcopy(grasp)}
    )
    cfg.rewards["lift"].params["asset_cfg"].site_names = ("grasp_site",)
    cfg.rewards["approach"] = RewardTermCfg(
        func=mdp.approach_progress,
        weight=2.0,
        params={"object_name": "cube", "asset_cfg": deepcopy(grasp)},
    )
    cfg.rewards["action_rate_l2"].weight = -0.02
    cfg.rewards["joint_vel_hinge"].params["asset_cfg"].joint_names = ("joint.*",)


def picker_lift_env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Create the configuration on states."""
    cfg = make_lift_cube_env_cfg()

    cfg.scene.entities = {
        "robot": get_arm_cfg(),
        "cube": EntityCfg(
            spec_fn=get_cube_spec, init_state=EntityCfg.InitialStateCfg(pos=(0.3, 0.0, 0.02))
        ),
    }

    _set_terms(cfg)
    fingertips = r"(left|right)_finger_collision"
    for name in ("slide", "spin", "roll"):
        cfg.events[f"fingertip_friction_{name}"].params["asset_cfg"].geom_names = fingertips
    cfg.events["reset_robot_joints"].params["position_range"] = (-0.05, 0.05)
    cfg.events |= _randomization() | _cube_randomization()

    for sensor in cfg.scene.sensors:
        if sensor.name == "ee_ground_collision":
            assert isinstance(sensor, ContactSensorCfg)
            sensor.primary.pattern = "link_5"

    command = cfg.commands["lift_height"]
    assert isinstance(command, LiftingCommandCfg)
    command.target_position_range.x = (0.2, 0.4)
    command.target_position_range.z = (0.1, 0.15)
    assert command.object_pose_range is not None
    command.object_pose_range.yaw = (-math.pi / 4, math.pi / 4)

    cfg.curriculum["raise_goal"] = CurriculumTermCfg(
        func=mdp.raise_goal, params={"command_name": "lift_height", "rate": 1e-4, "highest": 0.35}
    )
    cfg.metrics["grip_force"] = MetricsTermCfg(
        func=_grip_force, params={"asset_cfg": SceneEntityCfg("robot")}, reduce="max"
    )
    cfg.recorders["cube_heights"] = RecorderTermCfg(
        func=mdp.CubeHeights, params={"object_name": "cube"}
    )
    cfg.viewer.body_name = "base"

    if play:
        cfg.episode_length_s = int(1e9)
        cfg.observations["actor"].enable_corruption = False
        cfg.curriculum = {}
        command.resampling_time_range = (4.0, 4.0)

    return cfg


def picker_cartesian_env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Create the configuration in which the policy moves the gripper instead of the joints."""
    cfg = picker_lift_env_cfg(play=play)
    cfg.actions["arm"] = mdp.CartesianActionCfg(
        entity_name="robot",
        actuator_names=("joint[1-5]",),
        frame_type="site",
        frame_name="grasp_site",
        orientation_weight=0.0,
        position_weight=2.0,
        delta_pos_scale=0.05,
        max_dq=0.2,
    )
    return cfg


def _set_cameras(cfg: ManagerBasedRlEnvCfg) -> None:
    wrist = CameraSensorCfg(
        name="wrist_cam",
        camera_name="robot/wrist",
        width=24,
        height=24,
        data_types=("depth",),
        enabled_geom_groups=(0, 3),
    )
    front = CameraSensorCfg(
        name="front_cam",
        parent_body="robot/base",
        pos=(0.9, 0.0, 0.5),
        quat=(0.6, 0.37, 0.37, 0.6),
        fovy=50.0,
        width=24,
        height=24,
        data_types=("rgb", "depth"),
        enabled_geom_groups=(0, 3),
        use_shadows=False,
        use_textures=True,
    )
    cfg.scene.sensors = (cfg.scene.sensors or ()) + (wrist, front)


def picker_lift_depth_env_cfg(play: bool = False) -> ManagerBasedRlEnvCfg:
    """Create the configuration on depth images; the arm must find the cube by itself."""
    cfg = picker_lift_env_cfg(play=play)

    _set_cameras(cfg)
    cfg.observations["actor"].terms.pop("ee_to_cube")
    cfg.observations["actor"].terms.pop("cube_to_goal")
    cfg.observations["actor"].terms["goal_position"] = ObservationTermCfg(
        func=mdp.target_position,
        params={
            "command_name": "lift_height",
            "asset_cfg": SceneEntityCfg("robot", site_names=("grasp_site",)),
        },
    )
    cfg.observations["camera"] = ObservationGroupCfg(
        terms={
            "wrist_depth": ObservationTermCfg(
                func=mdp.camera_depth, params={"sensor_name": "wrist_cam", "cutoff_distance": 0.5}
            ),
            "front_depth": ObservationTermCfg(
                func=mdp.camera_depth, params={"sensor_name": "front_cam", "cutoff_distance": 2.0}
            ),
            "front_rgb": ObservationTermCfg(
                func=mdp.camera_rgb, params={"sensor_name": "front_cam"}
            ),
        },
        enable_corruption=False,
        concatenate_terms=True,
        concatenate_dim=0,
    )
    cfg.events["camera_fovy"] = EventTermCfg(
        mode="startup",
        func=dr.cam_fovy,
        params={
            "asset_cfg": SceneEntityCfg("robot", camera_names=("wrist",)),
            "ranges": (-3.0, 3.0),
            "operation": "add",
        },
    )
    return cfg


def _grip_force(env, asset_cfg: SceneEntityCfg):
    return env.scene[asset_cfg.name].data.actuator_force[:, -1].abs()
