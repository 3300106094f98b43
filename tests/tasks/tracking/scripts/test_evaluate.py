"""Judging policies: what is averaged, over which steps, and of which run."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.rl.training import train
from manyworlds.tasks import load_env_cfg, load_rl_cfg
from manyworlds.tasks.tracking.mdp import compute_mpkpe
from manyworlds.tasks.tracking.rl.runner import MotionTrackingOnPolicyRunner
from manyworlds.tasks.tracking.scripts.evaluate import (
    EvaluateOptions,
    evaluate_policy,
    evaluation_env_cfg,
    run_evaluate,
)


@pytest.fixture
def env(clip):
    """Three worlds of the task, as it is judged, with a motion of 30 frames."""
    cfg = evaluation_env_cfg("Tracking-Flat-Humanoid")
    cfg.scene.num_envs, cfg.seed = 3, 0
    names = ("joint_pos", "joint_vel", "body_pos_w", "body_quat_w")
    names += ("body_lin_vel_w", "body_ang_vel_w")
    short = replace(clip, **{name: getattr(clip, name)[:30] for name in names})
    cfg.commands["motion"].motion_fn = lambda: short
    cfg.commands["motion"].velocity_range = {}
    return ManagerBasedRlEnv(cfg, device="cpu")


def test_errors_are_means_over_the_steps_of_one_attempt(env):
    """Let world 1 fail after 10 steps; compare with errors noted on the way."""
    command, seen = env.command_manager.get_term("motion"), []
    compute = env.reward_manager.compute
    throw = torch.tensor([0.0, 1.0, 0.0])

    def look(dt):
        seen.append(compute_mpkpe(command).clone())
        return compute(dt)

    def policy(obs):
        if len(seen) == 9:
            pose = env.scene["robot"].data.root_link_pose_w.clone()
            pose[:, 2] += throw
            env.scene["robot"].write_root_link_pose_to_sim(pose)
        return torch.zeros(3, 29)

    env.reward_manager.compute = look
    result = evaluate_policy(env, policy)
    assert len(seen) == 30
    errors = torch.stack(seen)
    expected = torch.stack([errors[:, 0].mean(), errors[:10, 1].mean(), errors[:, 2].mean()])
    assert result["mpkpe"] == pytest.approx(expected.mean().item(), rel=1e-5)
    assert result["success_rate"] == pytest.approx(2.0 / 3.0)
    assert result["seconds"] == pytest.approx((30 + 10 + 30) / 3 * 0.02)
    assert set(result) >= {"root_relative_mpkpe", "joint_vel_error", "ee_pos_error", "ee_ori_error"}


def test_a_run_is_judged_with_its_own_motion(make_cfg, clip, tmp_path):
    """Train for one iteration with a motion file; judge the newest run and its folder alike."""
    task = "Tracking-Flat-Humanoid"
    cfg = make_cfg(num_envs=2, motion_file=str(clip.save(tmp_path / "clip.npz")))
    rl_cfg = replace(load_rl_cfg(task), max_iterations=1, num_steps_per_env=2, run_name="one")
    for network in (rl_cfg.actor, rl_cfg.critic):
        network.hidden_dims = (8,)
    run = train(task, cfg, rl_cfg, tmp_path, runner_cls=MotionTrackingOnPolicyRunner).run
    output = tmp_path / "figures.json"
    settings = {"num_envs": 2, "device": "cpu", "log_root": tmp_path}
    result = run_evaluate(task, EvaluateOptions(**settings, output_file=output))
    assert result == json.loads(output.read_text())
    assert 0.0 < result["seconds"] <= 8.02
    assert run_evaluate(task, EvaluateOptions(**settings, checkpoint=run.path)) == result


def test_policies_are_judged_from_perturbed_beginnings():
    """Compare with the configurations for watching and for training."""
    cfg, train_cfg = evaluation_env_cfg("Tracking-Flat-G1"), load_env_cfg("Tracking-Flat-G1")
    motion, trained = cfg.commands["motion"], train_cfg.commands["motion"]
    assert motion.velocity_range == trained.velocity_range != {}
    assert motion.sampling_mode == "start" and "push_robot" not in cfg.events
    assert cfg.metrics["tracking_errors"].params["ee_body_names"][0] == "left_ankle_roll_link"


def test_other_tasks_are_refused():
    """Ask for cartpole's tracking."""
    with pytest.raises(ValueError, match="no motion command"):
        evaluation_env_cfg("Cartpole-Balance")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--checkpoint", "."], "There is no checkpoint in '.'"),
        (["--log-root", "nowhere"], "nowhere"),
        (["Cartpole-Balance"], "The task has no motion command"),
    ],
)
def test_errors_get_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    """Print an error as `manyworlds` does."""
    from manyworlds.tasks.tracking.scripts.evaluate import main

    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="1"):
        main(arguments)
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
