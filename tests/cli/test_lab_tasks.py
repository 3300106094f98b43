"""`manyworlds lab` with each task, and with a run of each task."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from manyworlds.cli.lab import LabOptions, open_lab
from manyworlds.cli.main import main
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.tasks import load_env_cfg, load_rl_cfg, load_runner_cls
from manyworlds.tasks.registry import BUILTIN_TASKS
from tests.robots import robot_file
from tests.tasks.one_model import ONE_MODEL_TASKS

PLAIN = {
    "Cartpole-Balance",
    "Cartpole-Swingup",
    "Lift-Cube-Arm",
    "Lift-Cube-Yam",
    "Push-Variants",
    "Reach",
    "Tracking-Flat-G1",
    "Tracking-Flat-G1-No-State-Estimation",
    "Tracking-Flat-Humanoid",
    "Tracking-Flat-Humanoid-No-State-Estimation",
    "Velocity-Flat-G1",
    "Velocity-Flat-Go1",
    "Velocity-Flat-Humanoid",
    "Velocity-Flat-Quadruped",
    "Velocity-Rough-G1",
    "Velocity-Rough-Go1",
    "Velocity-Rough-Humanoid",
    "Velocity-Rough-Quadruped",
}
"""Tasks whose policies plain MuJoCo runs."""


@pytest.fixture
def task(request: pytest.FixtureRequest) -> str:
    """Name of the task; skips where its robot is absent, or images cannot be rendered."""
    name: str = request.param
    for part, file in {
        "G1": "unitree_g1/g1.xml",
        "Go1": "unitree_go1/go1.xml",
        "Yam": "i2rt_yam/yam.xml",
    }.items():
        if part in name:
            robot_file(file)
    if name.endswith(("-Rgb", "-Depth")) or "-Seg-" in name:
        request.getfixturevalue("gl")
    return name


@pytest.fixture(scope="session")
def motion_file(tmp_path_factory) -> Path:
    """A motion that humanoids of both kinds can track."""
    from manyworlds.tasks.tracking.config.humanoid import humanoid_clip

    return humanoid_clip().save(tmp_path_factory.mktemp("motion") / "clip.npz")


def write_run(task: str, folder: Path, motion_file: Path) -> Path:
    """Write the run folder of an untrained policy, as training does; return its path."""
    from manyworlds.rl.exporter_utils import export_policy, export_scene
    from manyworlds.rl.run_folder import RunFolder
    from manyworlds.rl.runner import OnPolicyRunner
    from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper

    env_cfg, rl_cfg = load_env_cfg(task), load_rl_cfg(task)
    env_cfg.scene.num_envs = 1
    if "motion" in env_cfg.commands:
        env_cfg.commands["motion"].motion_file = str(motion_file)
    env = ManagerBasedRlEnv(env_cfg, device="cpu")
    make = load_runner_cls(task) or OnPolicyRunner
    runner = make(RslRlVecEnvWrapper(env), asdict(rl_cfg), log_dir=None, device="cpu")
    run = RunFolder.reserve(folder, "all", "").begin(task, env_cfg, rl_cfg).path
    runner.cfg["upload_model"] = False
    runner.save(run / "model_0.pt")
    export_policy(runner, run / "policy.onnx", task=task)
    export_scene(env, run / "scene")
    env.close()
    return run


@pytest.mark.parametrize("task", sorted(BUILTIN_TASKS), indirect=True)
def test_every_task_opens(task):
    """Open the scene of the task in plain MuJoCo, and step."""
    lab = open_lab(LabOptions(target=task))
    lab.loop.mode = "direct"
    assert np.isfinite(lab.step(5).qpos).all() and lab.environment is None
    lab.stop()


@pytest.mark.slow
@pytest.mark.parametrize("task", sorted(ONE_MODEL_TASKS), indirect=True)
def test_every_run_opens(task, tmp_path, motion_file, capsys):
    """Open a run: its policy moves the robots, in plain MuJoCo where that is possible."""
    pytest.importorskip("rsl_rl", reason="learning needs the extra 'train'")
    pytest.importorskip("onnxruntime", reason="running policies needs the extra 'train'")
    run = write_run(task, tmp_path, motion_file)
    capsys.readouterr()
    lab = open_lab(LabOptions(target=str(run), paused=True))
    lab.loop.mode = "direct"
    out = capsys.readouterr().out
    assert (lab.environment is None) == (task in PLAIN), out
    assert ("steps the world" in out) == (task not in PLAIN)
    assert all(robot.owner == "policy" for robot in lab.controls)
    before = lab.snapshot
    period = 1 if lab.environment is None else lab.environment.env.cfg.decimation
    after = lab.step(2 * period + 1)
    assert np.isfinite(after.qpos).all() and (after.qpos != before.qpos).any()
    if lab.environment is not None:
        assert after.stepper == "environment" and lab.environment.report.step == 2
    lab.stop()


def test_a_lab_lists_differences_from_training(tmp_path, motion_file):
    """List what the environment for watching changes, and what was changed since training."""
    pytest.importorskip("rsl_rl", reason="learning needs the extra 'train'")
    run = write_run("Velocity-Flat-Quadruped", tmp_path, motion_file)
    params = run / "params" / "env.yaml"
    params.write_text(params.read_text().replace("decimation:", "absent_setting: 1\ndecimation:"))
    lab = open_lab(LabOptions(target=str(run), stepper="environment", play=True, paused=True))
    assert lab.environment is not None
    found = lab.environment.differences
    assert "events.push_robot: only in training" in found
    assert "observations.actor.enable_corruption: False, in training True" in found
    assert "absent_setting: only in training" in found
    assert not [line for line in found if "num_envs" in line or line.startswith("seed")]
    lab.stop()


@pytest.mark.parametrize(("play", "episodes"), [(False, 1), (True, 0)])
def test_episodes_of_an_environment_end_as_in_training(play, episodes):
    """Step a task by its environment: only the configuration for watching has endless episodes."""
    task = "Cartpole-Balance"
    lab = open_lab(LabOptions(target=task, stepper="environment", play=play, paused=True))
    assert lab.environment is not None
    lab.loop.mode = "direct"
    env = lab.environment.env
    num_steps = round(load_env_cfg(task).episode_length_s / env.step_dt)
    lab.step((num_steps + 1) * env.cfg.decimation)
    assert lab.environment.report.episodes == episodes
    lab.stop()


def test_commands_have_all_their_values(tmp_path, motion_file, capsys):
    """Steer a policy in the lab and in plain MuJoCo; refuse a wrong number of values."""
    pytest.importorskip("rsl_rl", reason="learning needs the extra 'train'")
    pytest.importorskip("onnxruntime", reason="running policies needs the extra 'train'")
    run = write_run("Velocity-Flat-Quadruped", tmp_path, motion_file)
    lab_args = ["lab", str(run), "--headless", "--seconds", "0"]
    play_args = ["play", "--onnx", str(run / "policy.onnx"), "--headless", "--steps", "20"]
    for command, message in (
        ("{'twist': (0.5,)}", "has 3 values, got 1: give all, as in --command \"{'twist': (0.0, "),
        ("{'twist': (1, 2, 3, 4)}", "has 3 values, got 4"),
        ("{'twits': (1, 2, 3)}", "has no command 'twits'; it has: twist."),
    ):
        for args in (lab_args, play_args):
            assert main([*args, "--command", command]) == 1
            assert message in capsys.readouterr().err
    ends = []
    for command in ("{}", "{'twist': (5, 0, 0)}"):
        assert main([*play_args, "--command", command]) == 0
        ends.append(capsys.readouterr().out)
    assert ends[0] != ends[1]
    lab = open_lab(LabOptions(target=str(run), command={"twist": (0.5, 0.0, 0.1)}, paused=True))
    assert lab.controls["robot"].controller.commands["twist"].tolist() == [0.5, 0.0, 0.1]
    lab.stop()
