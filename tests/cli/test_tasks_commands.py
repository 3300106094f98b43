"""`train`, `play` and `list`, as a user types them."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.cli import play as play_module
from manyworlds.cli.main import main
from manyworlds.cli.task_files import is_trusted
from manyworlds.rl.run_folder import RunFolder
from manyworlds.tasks import registry, run_configs
from manyworlds.tasks.run_configs import play_env_cfg
from manyworlds.utils.config import load_yaml
from tests.browser import free_port

pytest.importorskip("rsl_rl", reason="learning needs the extra 'train'")

SMALL = [
    "--env.scene.num-envs",
    "8",
    "--agent.num-steps-per-env",
    "4",
    "--agent.max-iterations",
    "2",
]
PLUGIN = """
from manyworlds.tasks import load_env_cfg, load_rl_cfg, register_task

env = load_env_cfg("Cartpole-Balance")
register_task("My-Balance", env, load_env_cfg("Cartpole-Balance", play=True),
              load_rl_cfg("Cartpole-Balance"), cpu_training="needs a GPU: 1 % in 3 hours")
"""


@pytest.fixture(autouse=True)
def own_registry(monkeypatch, tmp_path):
    """Forget tasks that a test registers, and with which files it trains."""
    monkeypatch.setattr(registry, "_TASKS", {})
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def train(tmp_path, *extra: str) -> int:
    """Train two tiny iterations."""
    return main(["train", "Cartpole-Swingup", *SMALL, "--log-root", str(tmp_path), *extra])


def test_list_names_tasks_by_keyword(capsys):
    """Print one name a line, or those with a keyword in them, with the training time on a CPU."""
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == registry.list_tasks()
    assert all(" on 1 core" in line or " on 2 cores" in line for line in lines)
    assert main(["list", "Cartpole-Swingup"]) == 0
    tables = capsys.readouterr().out
    for title in ("ActionManager", "group 'actor'", "RewardManager", "EventManager"):
        assert title in tables
    assert main(["list", "swing"]) == 0
    assert capsys.readouterr().out.splitlines() == ["Cartpole-Swingup  1 minute on 2 cores"]
    assert main(["list", "rough-quadruped"]) == 0
    line = capsys.readouterr().out.splitlines()[0]
    assert line.startswith("Velocity-Rough-Quadruped ") and line.endswith("22 minutes on 2 cores")
    assert main(["list", "zzz"]) == 1
    assert "No task contains 'zzz'" in capsys.readouterr().err


def test_train_overrides_reach_environment_and_learner(tmp_path, capsys):
    """Override any field from the command line, and record what was used."""
    extra = [
        "--env.rewards.smooth-reward.weight",
        "2.5",
        "--env.sim.mujoco.timestep",
        "0.02",
        "--env.events.reset-hinge.params.position-range",
        "(-0.3, 0.3)",
        "--agent.actor.hidden-dims",
        "(16, 16)",
    ]
    assert train(tmp_path, *extra) == 0
    out = capsys.readouterr().out
    run = RunFolder.latest(tmp_path)
    assert str(run.path) in out.replace("\n", "") and "policy.onnx" in out
    env = run.env_params()
    assert env["rewards"]["smooth_reward"]["weight"] == 2.5
    assert env["sim"]["mujoco"]["timestep"] == 0.02
    assert env["events"]["reset_hinge"]["params"]["position_range"] == [-0.3, 0.3]
    assert run.agent_params()["actor"]["hidden_dims"] == [16, 16]
    summary = json.loads((run.path / "summary.json").read_text())
    assert summary["iterations"] == 2 and summary["interrupted"] is False
    assert re.search(r"smooth_reward +. cartpole_smooth_reward +. +2\.5", out)
    assert "number of worlds: 8 on cpu, control step 0.1 s" in out
    assert "trained all 2 iterations" in out and f"\n  manyworlds play {run.path} " in out


def test_train_films_a_world(tmp_path, capsys, monkeypatch):
    """Film from the first step on, and say where the film is."""
    pytest.importorskip("PIL")
    monkeypatch.setattr(
        "manyworlds.viewer.video_recorder.attach_renderer",
        lambda env: setattr(env, "renderer", lambda: np.zeros((16, 16, 3), np.uint8)),
    )
    extra = ["--video", "--video-length", "3", "--video-interval", "5", "--enable-nan-guard"]
    assert train(tmp_path, *extra) == 0
    run = RunFolder.latest(tmp_path)
    films = sorted(path.stem for path in (run.path / "videos" / "train").iterdir())
    assert films == ["rl-video-step-0", "rl-video-step-5"]
    assert "videos/train/rl-video-step-5" in capsys.readouterr().out
    assert run.env_params()["sim"]["nan_guard"]["enabled"] is True


def test_several_gpus_are_several_processes(tmp_path, monkeypatch):
    """Become torchrun with the same arguments, which the processes it starts take as their own."""
    started = []

    def become(program, args):
        started.append((os.environ["CUDA_VISIBLE_DEVICES"], args[1:]))
        raise SystemExit(0)

    monkeypatch.setattr(os, "execv", become)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,7")
    assert train(tmp_path, "--gpu-ids", "[0,2]") == 0
    [(visible, args)] = started
    assert visible == "4,7"
    assert args[:4] == ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    assert args[4:8] == ["-m", "manyworlds.cli.main", "train", "Cartpole-Swingup"]
    assert args[-2:] == ["--gpu-ids", "[0,2]"] and "--log-root" in args


@pytest.mark.slow
@pytest.mark.parametrize("task", ["Velocity-Rough-Quadruped", "Velocity-Flat-Go1"])
def test_train_shows_the_options_of_tasks_with_sensors(task, capsys):
    """Offer every field of a legged robot's task."""
    assert main(["train", task, "--help"]) == 0
    out = capsys.readouterr().out
    assert "--env.rewards.pose.weight" in out and "--agent.max-minutes" in out


@pytest.mark.parametrize(
    ("options", "widths"),
    [
        (["--device", "cpu"], (128, 128, 128)),
        (["--preset", "gpu"], (512, 256, 128)),
        (["--preset", "cpu", "--agent.actor.hidden-dims", "(8,)"], (8,)),
    ],
)
def test_train_takes_the_settings_for_the_device(options, widths, monkeypatch):
    """Use a task's settings for few cores on a CPU, unless told otherwise; options count last."""
    seen = {}

    def train(task, env_cfg, rl_cfg, *args, **kwargs):
        seen.update(steps=env_cfg.decimation, widths=rl_cfg.actor.hidden_dims)
        raise ValueError("seen")

    monkeypatch.setattr("manyworlds.rl.training.train", train)
    assert main(["train", "Velocity-Flat-Quadruped", *options]) == 1
    assert seen["widths"] == widths
    assert seen["steps"] == (4 if "gpu" in options else 2)


def test_evaluate_prints_rewards_and_ends(tmp_path, capsys):
    """Evaluate the newest run in the task's own environment, with options over it."""
    assert train(tmp_path) == 0
    args = ["--env.scene.num-envs", "4", "--env.episode-length-s", "0.5"]
    assert main(["evaluate", "Cartpole-Swingup", "--log-root", str(tmp_path), *args]) == 0
    out = capsys.readouterr().out
    assert "4 episodes of at most 0.5 s" in out and "smooth_reward" in out and "time_out" in out


@pytest.mark.slow
def test_resume_goes_on_with_the_runs_own_configuration(tmp_path, capsys):
    """Take configuration and iteration from the newest run; let the command line change both."""
    assert train(tmp_path, "--env.rewards.smooth-reward.weight", "3.0") == 0
    first = RunFolder.latest(tmp_path)
    args = ["train", "Cartpole-Swingup", "--resume", "--log-root", str(tmp_path)]
    assert main(args) == 1
    assert "already has 2 iterations" in capsys.readouterr().err
    assert main([*args, "--agent.max-iterations", "3"]) == 0
    second = RunFolder.latest(tmp_path)
    assert second != first
    assert second.env_params()["rewards"]["smooth_reward"]["weight"] == 3.0
    assert second.env_params()["scene"]["num_envs"] == 8
    assert second.last_checkpoint().name == "model_2.pt"


@pytest.mark.slow
def test_auto_resume_begins_a_run_or_continues_it(tmp_path, capsys):
    """Continue the newest run of the same name, whatever other runs there are."""
    assert train(tmp_path, "--auto-resume") == 2
    assert "give it one with --agent.run-name NAME" in capsys.readouterr().err
    named = ["--auto-resume", "--agent.run-name"]
    assert train(tmp_path, *named, "a.b", "--checkpoint", "x.pt") == 2
    assert "leave out --resume, --checkpoint" in capsys.readouterr().err
    assert train(tmp_path, *named, "a.b") == 0
    for other in ("acb", "x_a.b", ""):
        assert train(tmp_path, *(named if other else []), *([other] if other else [])) == 0
    assert train(tmp_path, *named, "a.b", "--agent.max-iterations", "3") == 0
    last = RunFolder.latest(tmp_path)
    assert last.path.name.endswith("_a.b") and last.last_checkpoint().name == "model_2.pt"
    assert train(tmp_path, *named, "a.b", "--agent.max-iterations", "4") == 0
    assert RunFolder.latest(tmp_path).last_checkpoint().name == "model_3.pt"


@pytest.mark.slow
def test_auto_resume_of_a_complete_training_writes_its_files(tmp_path, capsys):
    """End a training that was killed after its last checkpoint, also if it lacks nothing."""
    named = ["--auto-resume", "--agent.run-name", "job"]
    assert train(tmp_path, *named) == 0
    run = RunFolder.latest(tmp_path)
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    written = ("policy.onnx", "learning_curve.png", "summary.json", "scene/scene.xml")
    for killed in (True, False):
        for name in written if killed else ():
            (run.path / name).unlink()
        capsys.readouterr()
        assert train(tmp_path, *named) == 0
        assert "already has 2 iterations" in capsys.readouterr().out
        assert {path for path in run.path.rglob("*") if path.is_file()} == {*before}
        for path, content in before.items():
            assert path.read_bytes() == content or path.suffix == ".png", path
    assert [*run.path.parent.glob("*_job*")] == [run.path]
    assert train(tmp_path, *named, "--agent.max-iterations", "1") == 0
    assert train(tmp_path, "--resume", "--agent.max-iterations", "1") == 1


@pytest.mark.slow
def test_play_loads_the_newest_run_into_its_own_worlds(tmp_path, monkeypatch, capsys):
    """Show the newest policy, with the physics it was trained with and the play worlds."""
    shown = {}

    def watch(env, policy, **kwargs):
        obs = env.get_observations()
        shown.update(kwargs, num_envs=env.num_envs, dt=env.physics_dt, action=policy(obs))

    monkeypatch.setattr(play_module, "watch", watch)
    assert train(tmp_path, "--env.sim.mujoco.timestep", "0.02") == 0
    args = ["play", "Cartpole-Swingup", "--log-root", str(tmp_path)]
    assert main([*args, "--latest", "--env.scene.num-envs", "3", "--port", "9000"]) == 0
    assert (shown["num_envs"], shown["dt"], shown["port"]) == (3, 0.02, 9000)
    assert shown["action"].shape == (3, 1)
    run = RunFolder.latest(tmp_path)
    assert play_env_cfg("Cartpole-Swingup", run).episode_length_s > 1e6
    assert main([*args, "--checkpoint", str(run.path / "model_0.pt"), "--agent", "trained"]) == 0
    assert main([*args, "--agent", "random"]) == 0


@pytest.mark.slow
def test_play_follows_a_run_that_goes_on(tmp_path, monkeypatch, capsys):
    """Offer the run's checkpoints; follow the newest unless one was named."""
    shown = {}
    monkeypatch.setattr(play_module, "watch", lambda env, policy, **kwargs: shown.update(kwargs))
    assert train(tmp_path) == 0
    args = ["play", "Cartpole-Swingup", "--log-root", str(tmp_path), "--num-envs", "2"]
    assert main(args) == 0
    manager = shown["checkpoints"]
    assert manager.follow
    assert manager.current_name == "model_1.pt"
    name, _ = manager.fetch_available()[-1]
    assert callable(manager.load_checkpoint(name))
    path = RunFolder.latest(tmp_path).path / name
    assert main([*args, "--checkpoint-file", str(path)]) == 0
    assert not shown["checkpoints"].follow
    assert shown["checkpoints"].current_name == name
    assert main([*args, "--agent", "zero"]) == 0
    assert shown["checkpoints"] is None


def test_play_changes_the_worlds(monkeypatch):
    """Take the number of worlds and endless episodes from the command line."""
    shown = {}
    monkeypatch.setattr(play_module, "watch", lambda env, policy, **kwargs: shown.update(env=env))
    args = ["play", "Cartpole-Swingup", "--agent", "zero"]
    assert main([*args, "--num-envs", "3", "--no-terminations"]) == 0
    assert shown["env"].num_envs == 3
    assert shown["env"].termination_manager.active_terms == []


@pytest.mark.slow
def test_play_films(tmp_path, monkeypatch, capsys, gl):
    """Film without a window, as long and as large as asked for."""
    args = ["play", "Cartpole-Swingup", "--agent", "random", "--log-root", str(tmp_path)]
    size = ["--video-height", "48", "--video-width", "64"]
    assert main([*args, "--video", "--video-length", "3", *size]) == 0
    (file,) = (tmp_path / "videos" / "play").iterdir()
    assert str(file) in capsys.readouterr().out
    assert main([*args, "--video", "--camera", "nowhere"]) == 1
    assert "nowhere" in capsys.readouterr().err
    assert main([*args, "--video", "--video-length", "0"]) == 1


def test_play_in_a_window_needs_a_display(monkeypatch, capsys):
    """Say what else there is where no window can be opened."""
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert main(["play", "Cartpole-Swingup", "--agent", "zero", "--viewer", "native"]) == 1
    assert "--viewer viser" in capsys.readouterr().err


@pytest.mark.slow
def test_train_with_a_page(tmp_path, capsys):
    """Serve a page while training, and end it; the policy is that of a run without one."""
    pytest.importorskip("viser", reason="the page needs the extra 'lab'")
    assert train(tmp_path / "plain") == 0
    port = str(free_port())
    assert train(tmp_path / "seen", "--view", "--port", port, "--view-worlds", "4") == 0
    served = re.search(r"watch at http://127\.0\.0\.1:(\d+)", capsys.readouterr().out)
    assert served is not None
    with pytest.raises(OSError), socket.create_connection(("127.0.0.1", int(served[1]))):
        pass
    plain, seen = (
        torch.load(RunFolder.latest(tmp_path / run).last_checkpoint(), weights_only=False)
        for run in ("plain", "seen")
    )
    for name, weights in plain["actor_state_dict"].items():
        assert torch.equal(weights, seen["actor_state_dict"][name]), name


@pytest.mark.slow
def test_runs_are_named_in_short_or_not_at_all(tmp_path, monkeypatch, capsys):
    """Play the newest run of any task, a run folder, a run by name, or a checkpoint of it."""
    monkeypatch.setattr(play_module, "watch", lambda env, policy, **kwargs: None)
    assert train(tmp_path, "--agent.run-name", "first") == 0
    run = RunFolder.latest(tmp_path)
    root = ["--log-root", str(tmp_path)]
    shorthands = [
        run.path,
        run.path.name,
        f"cartpole/{run.path.name}",
        f"{run.path.name}/model_1.pt",
    ]
    capsys.readouterr()
    paths = [str(run.path)], [str(run.path / "model_1.pt")]  # in the place of the task
    for args in ([], *paths, *(["--checkpoint", str(name)] for name in shorthands)):
        assert main(["play", *args, *root]) == 0
        assert capsys.readouterr().out.startswith(f"policy: {run.path / 'model_1.pt'}")
    for path in (str(run.path), str(run.path / "model_1.pt")):
        args = ["evaluate", path, "--num-envs", "2", "--env.episode-length-s", "0.2"]
        assert main(args) == 0
        assert capsys.readouterr().out.startswith(f"policy: {run.path / 'model_1.pt'}\n")
        assert main([*args, "--checkpoint", path]) == 2
        assert f"'{path}' is no task" in capsys.readouterr().err
    loose = tmp_path / "loose.pt"
    loose.write_bytes((run.path / "model_1.pt").read_bytes())
    assert main(["evaluate", str(loose)]) == 1
    said = f"name its task, manyworlds evaluate TASK --checkpoint {loose}."
    assert said in capsys.readouterr().err
    assert main(["play", "--log-root", str(tmp_path / "none")]) == 1
    assert "There is no trained run in" in capsys.readouterr().err


@pytest.mark.slow
def test_resuming_chooses_runs_and_checkpoints_by_pattern(tmp_path, capsys):
    """Go on from the newest run and the last checkpoint whose names match."""
    save_all = ["--agent.save-interval", "1"]
    assert train(tmp_path, "--agent.run-name", "first", *save_all) == 0
    first = RunFolder.latest(tmp_path)
    assert train(tmp_path, "--agent.run-name", "second", *save_all) == 0
    args = ["train", "Cartpole-Swingup", "--log-root", str(tmp_path), "--agent.resume"]
    args += ["--agent.load-run", ".*_first", "--agent.run-name", "third"]
    assert main([*args, "--agent.load-checkpoint", "model_0.pt"]) == 0
    third = RunFolder.latest(tmp_path, load_run=".*_third")
    assert [path.name for path in third.checkpoints()] == ["model_1.pt"]
    lines = (third.path / "progress.jsonl").read_text().splitlines()
    assert lines[0] == (first.path / "progress.jsonl").read_text().splitlines()[0]
    assert main([*args, "--agent.load-checkpoint", "model_9.pt"]) == 1
    assert "load_checkpoint='model_9.pt'" in capsys.readouterr().err


def test_an_exported_policy_runs_in_plain_mujoco(tmp_path, capsys):
    """Run the ONNX file of a run beside its scene, without window or environment."""
    assert train(tmp_path) == 0
    policy = RunFolder.latest(tmp_path).path / "policy.onnx"
    capsys.readouterr()
    args = ["play", "--onnx", str(policy)]
    assert main([*args, "--headless", "--steps", "10"]) == 0
    assert capsys.readouterr().out.startswith("time 0.50 s, qpos [")
    assert main([*args, "--headless"]) == 1
    assert "give --steps" in capsys.readouterr().err
    assert main(["play", "--onnx", "no.onnx"]) == 1
    assert "There is no policy 'no.onnx'" in capsys.readouterr().err
    damaged = tmp_path / "damaged.onnx"
    damaged.write_text("garbage")
    assert main(["play", "--onnx", str(damaged)]) == 1
    assert "is not a policy in the ONNX format (Load model from" in capsys.readouterr().err


def test_tasks_of_ones_own_are_loaded_from_a_file(tmp_path, capsys):
    """List and train a task that a Python file registers."""
    plugin = tmp_path / "my_tasks.py"
    plugin.write_text(PLUGIN)
    assert main(["list", "--load", str(plugin)]) == 0
    assert "needs a GPU: 1 % in 3 hours" in capsys.readouterr().out
    monkey = ["train", "--load", str(plugin), "My-Balance", *SMALL, "--log-root", str(tmp_path)]
    registry._TASKS.clear()
    assert main(monkey) == 0
    origin = load_yaml(RunFolder.latest(tmp_path).path / "params" / "run.yaml")
    assert origin["task"] == "My-Balance"
    assert origin["command"] == shlex.join(["manyworlds", *monkey])
    assert is_trusted(str(plugin))
    assert origin["versions"]["mujoco"] == mujoco.__version__


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["train", "Cartpole-Swing"], "There is no task 'Cartpole-Swing'. Did you mean"),
        (["play", "Cartpole-Swingup", "--log-root", "nowhere"], "no trained run of task"),
        (["play", "Cartpole-Swingup", "--checkpoint", "no.pt"], "There is no checkpoint 'no.pt'"),
        (
            ["list", "--load", "nothing.py"],
            "There is no file 'nothing.py' to load tasks from. Give",
        ),
        (["list", "--load", "no/a.py"], "tasks from. The folder 'no' does not exist either. Give"),
        (["replay-dump", "nofile"], "There is no file 'nofile'. Give the path of a nan_dump_"),
        (["list", "--load", "no_such_module"], "Cannot load module 'no_such_module'"),
        (["train", "Cartpole-Swingup", "--device", "gpu"], "There is no device 'gpu'"),
        pytest.param(
            ["train", "Cartpole-Swingup", "--agent.device", "mps"],
            "--agent.device is 'mps', but PyTorch finds no GPU of Apple",
            marks=pytest.mark.skipif(torch.backends.mps.is_available(), reason="there is one"),
        ),
        (["train", "Cartpole-Balance", *SMALL, "--log-root", "/proc/x"], "Cannot write a run"),
        (["train", "Cartpole-Balance", "--gpu-ids", "[9]"], "GPU 9 is requested, but there"),
        (["train", "Cartpole-Balance", "--video-interval", "0"], "at least 1 step, got 0"),
        (["bench", "Cartpole-Balance", "--plane"], "--plane is for model files, and 'Cartpole"),
        (["train", "Cartpole-Balance", "--remember"], "--remember needs --enter or --view: add"),
        (["train", "Cartpole-Balance", "--edits", "no-run"], "no-run"),
    ],
)
def test_mistakes_give_one_line(args, message, capsys, tmp_path, monkeypatch):
    """Name the thing, the value and the remedy; no traceback."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)  # an empty one hides all GPUs
    assert main(args) == 1
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1 and "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("argv", "texts"),
    [
        (["train", "--help"], ("TASK", "--load", "manyworlds list")),
        (["train", "Cartpole-Swingup", "--help"], ("--env.scene.num-envs", "--agent.max-iter")),
        (["train", "--help"], ("--resume", "--num-envs", "`manyworlds train TASK --help`")),
        (
            ["evaluate", "--help"],
            ("evaluate [-h] [OPTIONS] [TASK]\n", "--cases", "instead of TASK"),
        ),
        (["play", "--help"], ("play [-h] [OPTIONS] [TASK]\n", "--load", "--onnx", "--num-envs")),
        (["play", "Reach", "--num-envs", "3", "-h"], ("--env.scene.num-envs", "(default: 3)")),
        (["play", "--onnx", "policy.onnx", "--help"], ("--headless", "--scene")),
    ],
)
def test_help_before_and_after_the_task(argv, texts, capsys):
    """Print the help of the command, of the options of a task, or of exported policies."""
    assert main(argv) == 0
    out = capsys.readouterr().out
    assert all(text in out for text in texts), out
    assert "{fixed}" not in out


def test_play_serves_a_page_and_ends(tmp_path, capsys):
    """Open the page for a few steps, say where it is, and end clean."""
    pytest.importorskip("viser", reason="the page needs the extra 'lab'")
    assert main(["play", "Cartpole-Swingup", "--agent", "zero", "--steps", "3"]) == 0
    assert "watch at http://127.0.0.1:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--port", "99999"], "port of a page must be in [1, 65535], got 99999"),
        (["--host", "192.0.2.1"], "Cannot serve a page on host 192.0.2.1"),
    ],
)
def test_addresses_that_cannot_serve_are_named(args, message, capsys):
    """Refuse a page that nobody could open, before a server hangs."""
    pytest.importorskip("viser", reason="the page needs the extra 'lab'")
    assert main(["play", "Cartpole-Swingup", "--agent", "zero", *args]) == 1
    assert message in capsys.readouterr().err


def test_cameras_that_are_not_there_are_named(capsys):
    """Say which cameras a model has, before a film is begun."""
    film = ["play", "Cartpole-Swingup", "--agent", "zero", "--video", "--camera", "side"]
    assert main(film) == 1
    assert "There is no camera 'side': the model has none;" in capsys.readouterr().err


@pytest.mark.slow
def test_runs_remember_the_file_of_their_task(tmp_path, monkeypatch, capsys):
    """Load the file of a task again for each command that uses the run, from any folder."""
    file = tmp_path / "my tasks.py"
    file.write_text(PLUGIN)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(play_module, "watch", lambda env, policy, **kwargs: None)
    assert main(["train", "My-Balance", "--load", "my tasks.py", *SMALL]) == 0
    monkeypatch.chdir(tmp_path / "elsewhere")
    root = ["--log-root", str(tmp_path / "runs")]
    run = RunFolder.latest(tmp_path / "runs")
    assert run.origin().get("load") == [str(file)]
    copy = run.path / "task" / "my tasks.py"
    small = ["--num-envs", "2", "--env.episode-length-s", "0.2"]
    page = ["--no-film", "--worlds", "2", "--out", "report.html"]
    headless = ["--headless", "--seconds", "0"]
    more = ["--agent.max-iterations", "3"]
    for args in (
        ["play", *root],
        ["play", str(run.path)],
        ["play", "My-Balance", *root],
        ["evaluate", *root, *small],
        ["evaluate", "My-Balance", *root, *small],
        ["evaluate", str(run.path), *small],
        ["report", str(run.path), *page],
        ["report", "My-Balance", *root, *page],
        ["export", str(run.path), "--output", "scene"],
        ["lab", f"{run.path}/model_1.pt", *headless],
        ["lab", str(run.path), "--stepper", "environment", *headless],
        ["lab", "My-Balance", *root, *headless],
        ["train", "My-Balance", "--resume", *root, *more],
    ):
        registry.unregister_task("My-Balance")
        capsys.readouterr()
        assert main(args) == 0, (args, capsys.readouterr())
        err = capsys.readouterr().err
        assert err.count(f"loads its task from {copy}.") == 1, (args, err)
    resumed = RunFolder.latest(tmp_path / "runs")
    assert resumed != run and resumed.origin().get("load") == [str(file)]


def test_a_new_run_needs_the_file_of_its_task(tmp_path, monkeypatch, capsys):
    """Begin no new run with a file that was not named; say with which `--load` there was one."""
    monkeypatch.chdir(tmp_path)
    Path("my tasks.py").write_text(PLUGIN)
    assert main(["train", "My-Balance", "--load", "my tasks.py", *SMALL]) == 0
    registry.unregister_task("My-Balance")
    capsys.readouterr()
    assert main(["train", "My-Balance", *SMALL]) == 1
    err = capsys.readouterr().err
    assert err.startswith("error: There is no task 'My-Balance': the run '")
    assert f"--load '{tmp_path / 'my tasks.py'}'; repeat this option" in err
    assert err.count("\n") == 1


@pytest.mark.slow
def test_a_file_that_is_gone_is_named(tmp_path, monkeypatch, capsys):
    """Say which file registered the task of a run that has no copy, and take it from `--load`."""
    monkeypatch.chdir(tmp_path)
    Path("my tasks.py").write_text(PLUGIN)
    assert main(["train", "My-Balance", "--load", "my tasks.py", *SMALL]) == 0
    run = RunFolder.latest(Path("runs"))
    shutil.rmtree(run.path / "task")
    Path("my tasks.py").rename("moved.py")
    registry.unregister_task("My-Balance")
    said = f"was registered by '{tmp_path / 'my tasks.py'}', which does not exist any more"
    for args in (
        ["play"],
        ["play", str(run.path)],
        ["play", str(run.path), "--log-root", "elsewhere"],
        ["play", "My-Balance"],
        ["evaluate", "My-Balance"],
        ["evaluate", str(run.path)],
        ["train", "My-Balance", "--resume"],
        ["report", str(run.path)],
        ["report", "My-Balance"],
        ["export-dataset", str(run.path), "--output", "data"],
    ):
        capsys.readouterr()
        assert main(args) == 1, args
        err = capsys.readouterr().err
        assert said in err and "give --load FILE" in err and err.count("\n") == 1, (args, err)
    assert not (run.path / "report.html").exists()
    assert main(["lab", str(run.path), "--headless", "--seconds", "0"]) == 0
    err = capsys.readouterr().err
    assert f"warning: The task 'My-Balance' of the run '{run.path}' {said}" in err
    args = ["report", str(run.path), "--load", "moved.py", "--no-film", "--worlds", "2"]
    assert main(args) == 0 and "no evaluation" not in capsys.readouterr().err


def test_files_with_near_names_are_suggested(tmp_path, monkeypatch, capsys):
    """Name a file or a run that was probably meant."""
    monkeypatch.chdir(tmp_path)
    Path("my_tasks.py").write_text(PLUGIN)
    Path("nan_dump_1.npz").write_text("")
    for name in ("old", "new"):
        (folder := Path("runs/cartpole") / name / "params").mkdir(parents=True)
        (folder / "run.yaml").write_text("task: Cartpole-Swingup\n")
    os.utime("runs/cartpole/old/params/run.yaml", (0, 0))
    is_folder = "That is a folder of runs: name one of them, such as 'runs/cartpole/new'."
    for args, meant in (
        (["list", "--load", "my_taks.py"], "Did you mean 'my_tasks.py'?"),
        (["replay-dump", "nan_dmp_1.npz"], "Did you mean 'nan_dump_1.npz'?"),
        (["lab", "runs/cartpole", "--headless"], is_folder),
        (["lab", "runs", "--headless"], is_folder),
        (["play", "runs/cartpole"], is_folder),
        (["evaluate", "runs/cartpole"], is_folder),
        (["report", "runs"], is_folder),
    ):
        assert main(args) == 1
        assert meant in capsys.readouterr().err, args


@pytest.mark.parametrize("is_relative", [False, True])
def test_a_broken_task_file_is_named_with_its_line(tmp_path, capsys, monkeypatch, is_relative):
    """Say in which line of the user's file loading failed."""
    monkeypatch.chdir(tmp_path)
    path = Path() / "broken.py" if is_relative else tmp_path / "broken.py"
    path.write_text("x = 1\nimport no_such_thing\n")
    assert main(["list", "--load", str(path)]) == 1
    err = capsys.readouterr().err
    assert f"{path}', line 2: ModuleNotFoundError" in err and "Traceback" not in err


def test_export_dataset_writes_an_episode_of_each_world(tmp_path, capsys):
    """Run the policy of the newest run, and refuse a folder that exists."""
    pytest.importorskip("pyarrow", reason="needs the extra 'data'")
    assert train(tmp_path) == 0
    args = ["export-dataset", "Cartpole-Swingup", "--log-root", str(tmp_path)]
    out = ["--episodes", "2", "--output", str(tmp_path / "set")]
    assert main([*args, *out]) == 0
    assert "wrote 2 episodes" in capsys.readouterr().out
    info = json.loads((tmp_path / "set" / "meta" / "info.json").read_text())
    assert info["total_episodes"] == 2
    assert main([*args, *out]) == 2
    assert "exists: name another folder" in capsys.readouterr().err
    assert main([*args, "--episodes", "0", "--output", str(tmp_path / "none")]) == 2


def test_export_dataset_needs_episodes_that_end(tmp_path, capsys, monkeypatch):
    """Refuse a task without a time limit after the length of its episodes."""
    pytest.importorskip("pyarrow", reason="needs the extra 'data'")
    assert train(tmp_path) == 0
    own = run_configs.evaluation_env_cfg

    def endless(*args, **options):
        cfg = own(*args, **options)
        cfg.episode_length_s, cfg.terminations = 0.2, {}
        return cfg

    monkeypatch.setattr(run_configs, "evaluation_env_cfg", endless)
    args = ["export-dataset", "Cartpole-Swingup", "--log-root", str(tmp_path)]
    assert main([*args, "--episodes", "2", "--output", str(tmp_path / "set")]) == 1
    assert "have not ended after 0.2 s" in capsys.readouterr().err
    assert not (tmp_path / "set").exists()
