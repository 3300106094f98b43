"""A task package written for the reference runs unmodified."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("rsl_rl", reason="learning needs the extra 'train'")

PROJECT = Path(__file__).parents[1] / "project"


def _run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "manyworlds.compat.mjlab", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )


@pytest.mark.slow
def test_an_environment_steps():
    """Build the task from the registry and step it, bare and behind the adapter for rsl_rl."""
    result = _run(PROJECT / "scripts" / "rollout.py", "Sway-Pole")
    assert result.stdout == "rolled out Sway-Pole\n", result.stderr


@pytest.mark.slow
def test_the_train_command_trains(tmp_path):
    """Train one iteration by the project's own script, which calls the reference's command."""
    options = ("--env.scene.num-envs", "8", "--agent.max-iterations", "1", "--log-root", tmp_path)
    flags = ("--enable-nan-guard", "True", "--video", "False", "--agent.resume=False")
    result = _run(PROJECT / "scripts" / "train.py", "Sway-Pole", *options, *flags)
    assert "iteration 1/1" in result.stdout, result.stderr
    assert list(tmp_path.glob("sway/*/policy.onnx"))


@pytest.mark.slow
def test_a_runner_learns_from_a_dictionary_of_settings(tmp_path):
    """Train one iteration by a runner of the project's own making."""
    result = _run(PROJECT / "scripts" / "learn.py", "Sway-Pole", tmp_path)
    assert result.stdout.endswith("learned Sway-Pole\n"), result.stderr
    assert (tmp_path / "model_1.pt").exists()


def test_modules_run_too():
    """Run modules by name: the reference's commands and anybody's."""
    ours = _run("-m", "manyworlds.cli.main", "list")
    theirs = _run("-m", "mjlab.scripts.list_envs")
    assert theirs.returncode == 0 and theirs.stdout == ours.stdout
    assert "Cartpole-Balance" in ours.stdout


def test_a_missing_program_is_wrong_usage():
    """Say how it is used, with the code for wrong usage."""
    result = _run()
    assert result.returncode == 2 and result.stderr.startswith("usage: python -m")
