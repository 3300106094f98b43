"""Settings of the lifting task for few cores: the same task, with easier starts."""

from __future__ import annotations

import copy

import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.rl.config import RslRlOnPolicyRunnerCfg
from manyworlds.tasks import load_env_cfg, load_rl_cfg, use_cpu_preset
from tests.robots import robot_file

TASK = "Lift-Cube-Arm"
WORLDS = 32


def preset_env(task: str = TASK) -> ManagerBasedRlEnv:
    """Build the environment of a task's training on few cores."""
    if task.endswith("Yam"):
        robot_file("i2rt_yam/yam.xml")
    cfg = load_env_cfg(task)
    assert use_cpu_preset(task, cfg, load_rl_cfg(task))
    cfg.scene.num_envs, cfg.seed = WORLDS, 1
    return ManagerBasedRlEnv(cfg)


def start(env: ManagerBasedRlEnv, kind: str) -> None:
    """Start all episodes in one kind of states."""
    term = env.event_manager.get_term_cfg("start").func
    term._open[:] = torch.tensor([name == kind for name in term.names])
    env.reset()


def hand_and_cube(env: ManagerBasedRlEnv) -> tuple[torch.Tensor, torch.Tensor]:
    """Positions of the grasp site and of the cube, relative to the worlds' origins [m]."""
    robot = env.scene["robot"]
    hand = robot.data.site_pos_w[:, robot.site_names.index("grasp_site")]
    origins = env.scene.env_origins
    return hand - origins, env.scene["cube"].data.root_link_pos_w - origins


def stay(env: ManagerBasedRlEnv, squeeze: float) -> None:
    """Hold the present posture for a second, with the fingers closed further by some action."""
    term = env.action_manager.get_term("joint_pos")
    robot = env.scene["robot"]
    joints = [robot.joint_names.index(name) for name in term.target_names]
    action = (robot.data.joint_pos[:, joints] - term.offset) / term.scale
    action[:, term.target_names.index("left_finger")] -= squeeze
    for _ in range(50):
        _, _, ended, _, _ = env.step(action)
        assert not ended.any()


def test_the_preset_is_the_same_task_with_other_starts():
    """Keep what is observed, done, rewarded and ended, the solver, and the targets' range."""
    own, cheap = load_env_cfg(TASK), load_env_cfg(TASK)
    registered, rl_cfg = copy.deepcopy(own), load_rl_cfg(TASK)
    assert use_cpu_preset(TASK, cheap, rl_cfg)
    for name in ("observations", "actions", "rewards", "terminations"):
        assert getattr(cheap, name) == getattr(own, name)
    assert {**cheap.events, **own.events} == cheap.events
    assert {**cheap.curriculum, **own.curriculum} == cheap.curriculum
    for name in ("solver", "iterations", "cone", "impratio"):
        assert getattr(cheap.sim.mujoco, name) == getattr(own.sim.mujoco, name)
    assert cheap.decimation * cheap.sim.mujoco.timestep == pytest.approx(0.02)
    command, task = cheap.commands["lift_height"], own.commands["lift_height"]
    assert command.target_position_range == task.target_position_range
    assert command.success_threshold == task.success_threshold
    assert cheap.events["start"].params["kinds"]["task"].ranges == task.object_pose_range
    assert rl_cfg.actor.hidden_dims == (128, 128, 128)
    assert load_env_cfg(TASK) == registered


def test_tasks_with_cameras_have_no_preset():
    """Leave tasks alone whose networks see images, or several cubes."""
    for task in ("Lift-Cube-Arm-Rgb", "Lift-Cube-Arm-Depth", "Multi-Cube-Seg-Arm"):
        cfg, rl_cfg = load_env_cfg(task), load_rl_cfg(task)
        assert isinstance(rl_cfg, RslRlOnPolicyRunnerCfg)
        assert not use_cpu_preset(task, cfg, rl_cfg) and cfg == load_env_cfg(task)


@pytest.mark.slow
@pytest.mark.parametrize("task", [TASK, "Lift-Cube-Yam"])
def test_the_cube_is_in_the_hand_or_below_it(task):
    """Hold the posture after each kind of start: a held cube stays up, the others lie there."""
    env = preset_env(task)
    for kind, squeeze, lowest, farthest in (
        ("held", 0.5, 0.03, 0.005),
        ("around", 0.0, 0.019, 0.016),
        ("above", 0.0, 0.019, 0.11),
    ):
        start(env, kind)
        stay(env, squeeze)
        hand, cube = hand_and_cube(env)
        assert (hand - cube).norm(dim=1).max() < farthest
        assert cube[:, 2].min() > lowest and (cube[:, 0] - cube[:, 0].mean()).abs().max() > 0.05
        assert (cube[:, 2].max() < 0.021) == (kind != "held")


def test_the_last_kind_is_the_task_itself():
    """Start as in the task: the arm in its initial posture, the cube within its range."""
    env = preset_env()
    start(env, "task")
    robot = env.scene["robot"].data
    low, high = robot.soft_joint_pos_limits.unbind(-1)
    assert torch.allclose(robot.joint_pos, robot.default_joint_pos.clamp(low, high))
    _, cube = hand_and_cube(env)
    low, high = torch.tensor([0.2, -0.2, 0.02]), torch.tensor([0.4, 0.2, 0.05])
    assert ((low <= cube) & (cube <= high)).all()
    assert (cube.std(dim=0) > torch.tensor([0.03, 0.08, 0.005])).all()


def test_a_new_target_leaves_the_cube_in_the_hand():
    """Let the target change during an episode: it moves, and the cube does not."""
    env = preset_env()
    start(env, "held")
    term = env.command_manager.get_term("lift_height")
    _, before = hand_and_cube(env)
    target = term.command.clone()
    term.time_left[:] = 0.001
    env.command_manager.compute(0.02)
    assert torch.equal(hand_and_cube(env)[1], before)
    assert ((term.command - target).norm(dim=1) > 1e-3).all()


def test_cubes_at_their_targets_open_the_next_kind():
    """Count an episode as a success if the cube has been at its target."""
    env = preset_env()
    term = env.event_manager.get_term_cfg("start").func
    env.reset()
    for _ in range(12):
        env.command_manager.get_term("lift_height").metrics["episode_success"][:] = 1.0
        env.has_stepped[:] = True
        env.reset()
    assert term._open[1] and term.rates[0] > 0.5
