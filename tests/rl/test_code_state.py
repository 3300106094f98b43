"""State of the code in a run's folder."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.rl.code_state import read_code_state, write_code_state
from manyworlds.rl.config import runner_settings
from manyworlds.rl.distributed import Ranks
from manyworlds.rl.logger import TrainingLogger
from manyworlds.rl.training import train
from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper

pytestmark = pytest.mark.slow_on_warp


def git(folder: Path, *words: str) -> None:
    """Run git with a name and an address."""
    name = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "-C", str(folder), *name, *words], check=True, capture_output=True)


@pytest.fixture
def project(tmp_path) -> Path:
    """A repository with one commit and a change in an encoding of old."""
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "start")
    (folder / "task.py").write_bytes(b"name = 'caf\xe9'\n")
    git(folder, "add", "task.py")
    return folder


def test_a_run_keeps_the_state_of_the_code(env_cfg, rl_cfg, log_root, project, monkeypatch):
    """Train in a repository with a change: the run's folder has commit, status and change."""
    monkeypatch.chdir(project)
    rl_cfg.max_iterations = 1
    result = train("Cartpole-Swingup", env_cfg, rl_cfg, log_root)
    text = (result.run.path / "git" / "project.diff").read_bytes()
    assert b"--- git commit ---" in text and b"new file:   task.py" in text
    assert b"+name = 'caf\xe9'" in text


def test_places_without_code_are_left_out(project, tmp_path, monkeypatch):
    """Write one file a repository; none outside of one, before a commit, or without git."""
    (project / "inner").mkdir()
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "-q")
    places = [tmp_path, tmp_path / "empty", tmp_path / "missing", project, project / "inner"]
    files = write_code_state(tmp_path / "git", places)
    assert files == list((tmp_path / "git").iterdir()) == [tmp_path / "git" / "project.diff"]
    monkeypatch.setenv("PATH", "")
    assert write_code_state(tmp_path / "other", places) == []
    assert not (tmp_path / "other").exists()


def test_commits_are_read_back(project, tmp_path):
    """Read the commit of each repository, and whether its files differed from the commit."""
    folder = tmp_path / "states"
    write_code_state(folder, [project])
    commit = subprocess.run(
        ["git", "-C", str(project), "rev-parse", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    assert read_code_state(folder) == {"project": f"{commit}-dirty"}
    git(project, "reset", "--hard", "-q")
    write_code_state(folder, [project])
    (folder / "odd.diff").write_text("nothing known")
    assert read_code_state(folder) == {"odd": "", "project": commit}
    assert read_code_state(tmp_path / "none") == {}


def test_only_the_process_that_writes_touches_the_folder(env_cfg, rl_cfg, tmp_path):
    """Leave the folder alone in the other processes of one training."""
    env = RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg))
    for rank in (1, 0):
        folder = tmp_path / f"run{rank}"
        folder.mkdir()
        ranks = Ranks(rank=rank, world_size=2)
        logger = TrainingLogger(env, runner_settings(rl_cfg), str(folder), ranks)
        logger.init_logging_writer()
        logger.stop_logging_writer()
        assert any(folder.iterdir()) is (rank == 0)
