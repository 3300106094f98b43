"""Commands that a training prints, typed as they stand."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from manyworlds.cli.main import main
from manyworlds.rl.run_folder import RunFolder
from manyworlds.tasks import registry

pytest.importorskip("rsl_rl", reason="learning needs the extra 'train'")

PLUGIN = """
from manyworlds.tasks import load_env_cfg, load_rl_cfg, register_task

env = load_env_cfg("Cartpole-Balance")
env.scene.num_envs = 8
register_task("My-Balance", env, env, load_rl_cfg("Cartpole-Balance"))
"""


@pytest.fixture
def training(tmp_path, monkeypatch):
    """Start a training of a task of one's own, whose worlds can be entered."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_TASKS", {})
    Path("my tasks.py").write_text(PLUGIN)
    args = ["train", "My-Balance", "--load", "my tasks.py", "--enter"]
    command = [sys.executable, "-m", "manyworlds", *args, "--agent.max-iterations", "1000000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


@pytest.mark.slow
def test_printed_commands_work_as_they_stand(training, capsys):
    """Enter the training, stop it, and go on: the run remembers the file of its task."""
    line = next(line for line in training.stdout if "lab --attach" in line)
    enter = shlex.split(line.rpartition("manyworlds ")[2])
    assert training.stdout.readline().startswith("iteration 1/")
    run = Path(enter[2])
    assert enter == ["lab", "--attach", str(run), "--world", "0"]
    assert main([*enter, "--headless", "--seconds", "0"]) == 0
    assert f"world 0 of {run.name} after" in capsys.readouterr().out
    training.send_signal(signal.SIGINT)
    assert any(line.startswith("stopped after") for line in training.stdout)
    said = next(line for line in training.stdout if "manyworlds train" in line)
    resume = shlex.split(said.rpartition("manyworlds ")[2])
    last = RunFolder(run).last_checkpoint()
    assert resume[2:] == ["--checkpoint", str(last)]
    registry._TASKS.clear()
    iterations = int(last.stem.partition("_")[2]) + 2
    assert main([*resume, "--agent.max-iterations", str(iterations)]) == 0
