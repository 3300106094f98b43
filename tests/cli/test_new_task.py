"""`manyworlds new-task`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from manyworlds.cli.main import main
from manyworlds.cli.new_task import write_task
from manyworlds.tasks import registry


def test_the_file_trains_as_it_stands(tmp_path, monkeypatch, capsys):
    """Write a task, check it, train it for an iteration, and find that ruff has nothing to say."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    assert main(["new-task", "My-Own-Reach"]) == 0
    out = capsys.readouterr().out
    assert "manyworlds train My-Own-Reach --load my_own_reach.py" in out
    small = ["--agent.max-iterations", "1", "--env.scene.num-envs", "8"]
    args = ["train", "My-Own-Reach", "--load", "my_own_reach.py", *small]
    assert main(args) == 0
    assert list(tmp_path.glob("runs/my_own_reach/*/model_0.pt"))
    check = [sys.executable, "-m", "ruff", "check", "--isolated", "my_own_reach.py"]
    subprocess.run([*check, "--select", "E,F", "--line-length", "100"], check=True)


def test_the_task_has_nothing_that_users_should_mend(tmp_path):
    """Check the template as users check their tasks."""
    from manyworlds.envs import check_env
    from manyworlds.tasks import load_env_cfg

    assert not check_env(load_env_cfg("Reach")).findings


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["../evil"], "is no name for a task"),
        (["Cartpole-Balance"], "a task 'Cartpole-Balance' already"),
    ],
)
def test_wrong_names_are_refused(args, message, tmp_path, monkeypatch, capsys):
    """Refuse what is no name, and write nothing."""
    monkeypatch.chdir(tmp_path)
    assert main(["new-task", *args]) == 1
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_there_stays(tmp_path):
    """Never overwrite an existing folder."""
    (tmp_path / "mine.py").write_text("precious")
    with pytest.raises(FileExistsError, match=r"mine\.py' is there already"):
        write_task("Mine", tmp_path)
    assert (tmp_path / "mine.py").read_text() == "precious"
