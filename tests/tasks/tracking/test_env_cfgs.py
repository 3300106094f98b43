"""The tracking tasks, as their contract has them."""

from __future__ import annotations

import importlib
import re

import pytest

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.managers import CommandManager
from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.tasks import load_env_cfg, load_rl_cfg, load_runner_cls
from manyworlds.tasks.tracking import mdp
from manyworlds.tasks.tracking.config.g1 import unitree_g1_flat_tracking_env_cfg
from manyworlds.tasks.tracking.rl.runner import MotionTrackingOnPolicyRunner
from manyworlds.tasks.tracking.tracking_env_cfg import VELOCITY_RANGE
from manyworlds.utils.config import to_plain
from tests.robots import robot_file

TASKS = [
    f"Tracking-Flat-{robot}{suffix}"
    for robot in ("Humanoid", "G1")
    for suffix in ("", "-No-State-Estimation")
]


def test_rewards_and_terminations_are_those_of_the_contract():
    """Compare weights, widths and thresholds of G1's task."""
    cfg = unitree_g1_flat_tracking_env_cfg()
    table = {name: (term.weight, term.params.get("std")) for name, term in cfg.rewards.items()}
    assert table == {
        "motion_global_root_pos": (0.5, 0.3),
        "motion_global_root_ori": (0.5, 0.4),
        "motion_body_pos": (1.0, 0.3),
        "motion_body_ori": (1.0, 0.4),
        "motion_body_lin_vel": (1.0, 1.0),
        "motion_body_ang_vel": (1.0, 3.14),
        "action_rate_l2": (-0.1, None),
        "joint_limit": (-10.0, None),
        "self_collisions": (-10.0, None),
    }
    thresholds = {n: t.params.get("threshold") for n, t in cfg.terminations.items()}
    assert thresholds == {
        "time_out": None,
        "anchor_pos": 0.25,
        "anchor_ori": 0.8,
        "ee_body_pos": 0.25,
        "diverged": None,
    }
    assert (cfg.decimation, cfg.episode_length_s, cfg.sim.mujoco.timestep) == (4, 10.0, 0.005)
    assert cfg.commands["motion"].velocity_range == VELOCITY_RANGE
    assert cfg.commands["motion"].joint_position_range == (-0.1, 0.1)
    assert type(cfg.actions["joint_pos"]) is mdp.JointPositionActionCfg
    noise = {n: t.noise.n_max for n, t in cfg.observations["actor"].terms.items() if t.noise}
    assert noise == {
        "motion_anchor_pos_b": 0.25,
        "motion_anchor_ori_b": 0.05,
        "base_lin_vel": 0.5,
        "base_ang_vel": 0.2,
        "joint_pos": 0.01,
        "joint_vel": 0.5,
    }


def test_worlds_differ_as_the_contract_has_it():
    """Compare the events of G1's task, names and bounds."""
    events = unitree_g1_flat_tracking_env_cfg().events
    assert {name: (e.mode, e.func.__name__) for name, e in events.items()} == {
        "push_robot": ("interval", "push_by_setting_velocity"),
        "base_com": ("startup", "body_com_offset"),
        "encoder_bias": ("startup", "encoder_bias"),
        "foot_friction": ("startup", "geom_friction"),
    }
    com, bias, feet = (events[name].params for name in [*events][1:])
    assert com["ranges"] == {0: (-0.025, 0.025), 1: (-0.05, 0.05), 2: (-0.05, 0.05)}
    assert com["operation"] == "add" and com["asset_cfg"].body_names == ("torso_link",)
    assert bias["bias_range"] == (-0.01, 0.01)
    assert (feet["operation"], feet["ranges"], feet["shared_random"]) == ("abs", (0.3, 1.2), True)


@pytest.mark.parametrize("task", ["Tracking-Flat-Humanoid", "Tracking-Flat-G1"])
def test_worlds_differ(task, clip):
    """Build worlds: torsos, encoders and feet differ between them, the feet of one are alike."""
    if "G1" in task:
        robot_file("unitree_g1/g1.xml")
    cfg = load_env_cfg(task)
    cfg.scene.num_envs, cfg.seed = 3, 1
    cfg.commands["motion"].motion_fn = lambda: clip
    env = ManagerBasedRlEnv(cfg, device="cpu")
    robot, model = env.scene["robot"], env.sim.model
    torso = robot.indexing.body_ids[robot.body_names.index("torso_link")]
    assert len(model.body_ipos[:, torso].unique(dim=0)) == 3
    assert len(robot.data.encoder_bias.unique(dim=0)) == 3
    soles = [i for i, name in enumerate(robot.geom_names) if re.search("_foot[0-9]", name)]
    assert len(soles) >= 4
    friction = model.geom_friction[:, robot.indexing.geom_ids[soles], 0]
    assert (friction == friction[:, :1]).all() and len(friction[:, 0].unique()) == 3


@pytest.mark.parametrize("task", TASKS)
def test_play_is_the_same_task_without_perturbations(task):
    """Compare the configurations for training and for watching."""
    train, play = load_env_cfg(task), load_env_cfg(task, play=True)
    for group in ("actor", "critic"):
        assert [*play.observations[group].terms] == [*train.observations[group].terms]
    assert not play.observations["actor"].enable_corruption
    assert train.observations["actor"].enable_corruption
    assert not train.observations["critic"].enable_corruption
    assert play.episode_length_s > 1e6 and "push_robot" not in play.events
    motion = play.commands["motion"]
    assert motion.sampling_mode == "start"
    assert (motion.pose_range, motion.velocity_range) == ({}, {})
    assert motion.joint_position_range == (0.0, 0.0)
    assert vars(play.actions["joint_pos"]) == vars(train.actions["joint_pos"])


def test_without_state_estimation_the_actor_knows_less():
    """Compare what actors see; critics see the same."""
    knowing, plain = (load_env_cfg(f"Tracking-Flat-Humanoid{s}") for s in ("", TASKS[1][22:]))
    missing = set(knowing.observations["actor"].terms) - set(plain.observations["actor"].terms)
    assert missing == {"motion_anchor_pos_b", "base_lin_vel"}
    assert [*knowing.observations["critic"].terms] == [*plain.observations["critic"].terms]


@pytest.mark.parametrize("task", TASKS)
def test_tasks_run(task, clip):
    """Build four worlds of each and step; G1 only where its model is."""
    if "G1" in task:
        robot_file("unitree_g1/g1.xml")
    cfg = load_env_cfg(task)
    cfg.scene.num_envs, cfg.seed = 4, 1
    cfg.commands["motion"].motion_fn = lambda: clip
    env = ManagerBasedRlEnv(cfg, device="cpu")
    assert isinstance(env.command_manager, CommandManager)
    for _ in range(3):
        obs, reward, *_ = env.step(env.action_manager.action * 0.0)
        assert reward.isfinite().all() and obs["actor"].isfinite().all()
    assert obs["critic"].shape[1] == 286
    assert obs["actor"].shape[1] == (154 if "No" in task else 160)


@pytest.mark.parametrize("robot", ["humanoid", "g1"])
def test_few_cores_learn_the_same_task(robot):
    """Take the settings for few cores: what is seen, done, rewarded and failed is the same."""
    module = importlib.import_module(f"manyworlds.tasks.tracking.config.{robot}")
    task = f"Tracking-Flat-{robot.capitalize()}"
    cfg, rl_cfg = load_env_cfg(task), load_rl_cfg(task)
    module.use_cpu_preset(cfg, rl_cfg)
    before = load_env_cfg(task)
    for name in ("actions", "rewards", "terminations", "episode_length_s"):
        assert to_plain(getattr(cfg, name)) == to_plain(getattr(before, name))
    for group in ("actor", "critic"):
        assert cfg.observations[group].terms == before.observations[group].terms
        assert not (group == "actor" and cfg.observations[group].enable_corruption)
    assert cfg.scene.num_envs == 512 and cfg.events == {}
    assert cfg.commands["motion"].velocity_range["x"] == (-0.1, 0.1)
    assert rl_cfg.actor.hidden_dims == (128, 128, 128)


def test_the_learner_is_the_motion_s_own():
    """Load settings and the runner that exports the motion."""
    assert isinstance(load_rl_cfg("Tracking-Flat-G1"), RslRlOnPolicyRunnerCfg)
    assert load_rl_cfg("Tracking-Flat-G1").experiment_name == "g1_tracking"
    assert load_runner_cls("Tracking-Flat-G1") is MotionTrackingOnPolicyRunner
    assert load_runner_cls("Cartpole-Balance") is None
