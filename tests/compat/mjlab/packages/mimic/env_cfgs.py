"""The tracking environments."""

from dataclasses import fields

from mjlab.envs import ManagerBasedRlEnvCfg
from mjlab.envs.mdp.actions import JointPositionActionCfg
from mjlab.managers import (
    MetricsTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationTermCfg,
)
from mjlab.sensor import ContactMatch, ContactSensorCfg
from mjlab.tasks.tracking.mdp import MotionCommandCfg
from mjlab.tasks.tracking.tracking_env_cfg import VELOCITY_RANGE, make_tracking_env_cfg
from mjlab.utils.noise import GaussianNoiseCfg as Gnoise

from . import mdp
from .biped import ACTION_SCALE, get_biped_cfg

_BODY_NAMES = (
    "pelvis",
    "torso_link",
    "left_arm_link",
    "right_arm_link",
    "left_shin_link",
    "right_shin_link",
    "left_foot_link",
    "right_foot_link",
)


def _paced(motion_cfg: MotionCommandCfg) -> mdp.PacedMotionCommandCfg:
    """Turn the skeleton's command into ours, with all that it sets."""
    values = {field.name: getattr(motion_cfg, field.name) for field in fields(motion_cfg)}
    return mdp.PacedMotionCommandCfg(**values, hold_prob=0.1)


def _set_sensors(cfg: ManagerBasedRlEnvCfg) -> None:
    self_collision_cfg = ContactSensorCfg(
        name="self_collision",
        primary=ContactMatch(mode="subtree", pattern="pelvis", entity="robot"),
        secondary=ContactMatch(mode="subtree", pattern="pelvis", entity="robot"),
        fields=("found", "force"),
        reduce="none",
        num_slots=1,
        history_length=4,
    )
    feet = ("left_foot_link", "right_foot_link")
    feet_ground_cfg = ContactSensorCfg(
        name="feet_ground",
        primary=ContactMatch(mode="body", pattern=feet, entity="robot"),
        secondary=ContactMatch(mode="body", pattern="terrain"),
        reduce="netforce",
    )
    cfg.scene.sensors = (self_collision_cfg, feet_ground_cfg)


def _set_commands(cfg: ManagerBasedRlEnvCfg) -> None:
    motion_cmd = cfg.commands["motion"]
    assert isinstance(motion_cmd, MotionCommandCfg)
    motion_cmd.anchor_body_name = "torso_link"
    motion_cmd.body_names = _BODY_NAMES
    motion_cmd.velocity_range = {k: (0.5 * lo, 0.5 * hi) for k, (lo, hi) in VELOCITY_RANGE.items()}
    cfg.commands["motion"] = _paced(motion_cmd)
    cfg.commands["wave"] = mdp.WaveCommandCfg(
        resampling_time_range=(0.5, 1.5),
        entity_name="robot",
        hand_names=(".*_arm_link",),
        debug_vis=True,
    )


def _set_rewards(cfg: ManagerBasedRlEnvCfg) -> None:
    cfg.rewards["hold_hands"] = RewardTermCfg(
        func=mdp.hold_hands, weight=0.3, params={"command_name": "wave", "std": 0.2}
    )
    cfg.rewards["stumble"] = RewardTermCfg(
        func=mdp.feet_stumble, weight=-0.1, params={"sensor_name": "feet_ground"}
    )
    cfg.rewards["power"] = RewardTermCfg(
        func=mdp.ankle_power,
        weight=-1e-4,
        params={
            "asset_cfg": SceneEntityCfg("robot", joint_names=(".*_ankle_.*", ".*_knee_.*")),
            "weights": {".*_ankle_.*": 2.0, ".*_knee_.*": 0.5},
        },
    )
    cfg.rewards["motion_body_pos"].params["body_names"] = _BODY_NAMES[1:]


def _set_observations(cfg: ManagerBasedRlEnvCfg, has_state_estimation: bool) -> None:
    actor = cfg.observations["actor"]
    actor.terms["phase"] = ObservationTermCfg(
        func=mdp.motion_phase, params={"command_name": "motion"}
    )
    actor.terms["wave"] = ObservationTermCfg(
        func=mdp.generated_commands, params={"command_name": "wave"}
    )
    actor.terms["joint_acc"] = ObservationTermCfg(
        func=mdp.joint_acc_estimate,
        params={"asset_cfg": SceneEntityCfg("robot", joint_names=(".*_knee_joint",))},
        noise=Gnoise(mean=0.0, std=0.1),
        scale=0.01,
        clip=(-50.0, 50.0),
        history_length=3,
    )
    if not has_state_estimation:
        cfg.observations["actor"] = ObservationGroupCfg(
            terms={
                name: term
                for name, term in actor.terms.items()
                if name not in ["motion_anchor_pos_b", "base_lin_vel"]
            },
            concatenate_terms=True,
            enable_corruption=True,
        )
    cfg.observations["critic"].terms["feet"] = ObservationTermCfg(
        func=mdp.body_pos_in_root,
        params={"asset_cfg": SceneEntityCfg("robot", body_names=(".*_foot_link",))},
    )


def biped_tracking_env_cfg(
    has_state_estimation: bool = True, play: bool = False
) -> ManagerBasedRlEnvCfg:
    """Create the configuration."""
    cfg = make_tracking_env_cfg()

    cfg.scene.entities = {"robot": get_biped_cfg()}
    _set_sensors(cfg)
    joint_pos_action = cfg.actions["joint_pos"]
    assert isinstance(joint_pos_action, JointPositionActionCfg)
    joint_pos_action.scale = ACTION_SCALE
    _set_commands(cfg)
    cfg.events["foot_friction"].params["asset_cfg"].geom_names = r"^(left|right)_foot_collision$"
    cfg.events["base_com"].params["asset_cfg"].body_names = ("torso_link",)
    _set_rewards(cfg)
    cfg.terminations["anchor_pos"].func = mdp.bad_anchor_pos
    cfg.terminations["ee_body_pos"].params["body_names"] = ("left_foot_link", "right_foot_link")
    cfg.terminations["motion_over"] = TerminationTermCfg(
        func=mdp.motion_over, params={"command_name": "motion"}, time_out=True
    )
    _set_observations(cfg, has_state_estimation)
    cfg.metrics["mpkpe"] = MetricsTermCfg(func=_mpkpe, params={"command_name": "motion"})
    cfg.viewer.body_name = "torso_link"

    if play:
        cfg.episode_length_s = int(1e9)
        cfg.observations["actor"].enable_corruption = False
        cfg.events.pop("push_robot", None)
        motion = cfg.commands["motion"]
        assert isinstance(motion, mdp.PacedMotionCommandCfg)
        motion.pose_range = {}
        motion.velocity_range = {}
        motion.joint_position_range = (0.0, 0.0)
        motion.sampling_mode = "start"
        motion.hold_prob = 0.0

    return cfg


def _mpkpe(env, command_name: str):
    return mdp.compute_mpkpe(env.command_manager.get_term(command_name))
