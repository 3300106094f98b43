"""Files and modules that register tasks."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from unittest import mock

import pytest

from manyworlds.cli.main import main
from manyworlds.cli.options import PolicyOptions, parse_task_command
from manyworlds.cli.runs import find_task
from manyworlds.cli.task_files import (
    absolute,
    is_trusted,
    load_modules,
    load_task_of,
    remembered,
    trust,
)
from manyworlds.rl.run_folder import RunFolder
from manyworlds.tasks import list_tasks, registry
from manyworlds.utils.config import dump_yaml
from manyworlds.utils.platforms import is_windows

TASK = """
from manyworlds.tasks import load_env_cfg, load_rl_cfg, register_task

env = load_env_cfg("Cartpole-Balance")
register_task("Found", env, env, load_rl_cfg("Cartpole-Balance"))
"""


class Terminal(io.StringIO):
    """Text as from a terminal."""

    def isatty(self) -> bool:
        """Return True."""
        return True


@pytest.fixture
def run(tmp_path, monkeypatch) -> RunFolder:
    """Write a run folder from elsewhere, and the file that it names."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(registry, "_TASKS", {})
    file = tmp_path / "their tasks.py"
    file.write_text(TASK)
    run = RunFolder(tmp_path / "run")
    dump_yaml(run.path / "params" / "run.yaml", {"task": "Found", "load": [str(file)]})
    (run.path / "model_1.pt").write_text("")
    return run


def at_terminal(monkeypatch, answer: str) -> Terminal:
    """Let the user answer at a terminal; return what it shows."""
    shown = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", shown)
    return shown


@mock.patch.dict(sys.modules)
def test_files_are_modules_by_their_own_names(tmp_path):
    """Load a file as `import` would, but never in place of a module that exists."""
    for name in ("own_to_a_test", "random", "gymnasium", "a-b"):
        (tmp_path / f"{name}.py").write_text("HERE = 1\n")
        load_modules((str(tmp_path / f"{name}.py"),))
    (tmp_path / "other").mkdir()
    (other := tmp_path / "other" / "own_to_a_test.py").write_text("HERE = 2\n")
    load_modules((str(other),))
    assert sys.modules["own_to_a_test"].HERE == 1
    assert sys.modules["manyworlds_loaded_own_to_a_test"].HERE == 2
    for name in ("random", "gymnasium", "a-b"):
        assert not hasattr(sys.modules.get(name), "HERE")
        assert sys.modules[f"manyworlds_loaded_{name}"].HERE == 1


def test_values_are_absolute_paths_or_names_of_modules(tmp_path, monkeypatch):
    """Make paths independent of the folder, and keep names of modules."""
    monkeypatch.chdir(tmp_path)
    assert absolute(["a.py", "my.tasks", "/b/c.py"]) == (
        str(tmp_path / "a.py"),
        "my.tasks",
        "/b/c.py",
    )


@pytest.mark.parametrize(
    ("recorded", "names"),
    [
        (["/x/a.py", "my.tasks"], ("/x/a.py", "my.tasks")),
        ([], ()),
        (None, ()),
        ("/x/a.py", ()),
        (["a.py", "../a.py", "RUN/a.py", "RUN/../b/../run/a.py"], ()),
    ],
)
def test_a_run_remembers_its_files(recorded, names, tmp_path):
    """Take absolute paths and modules, and no file that comes with a run folder."""
    run = RunFolder(tmp_path / "run")
    assert remembered(run) == ()
    if isinstance(recorded, list):
        recorded = [name.replace("RUN", str(run.path)) for name in recorded]
    dump_yaml(run.path / "params" / "run.yaml", {"task": "T", "load": recorded})
    assert remembered(run) == names


def test_a_run_from_elsewhere_runs_no_code_without_a_terminal(run, tmp_path, capsys):
    """Name the option that agrees, in one sentence, for each command."""
    name = str(run.path)
    remedy = f"not trained yet: give --load '{tmp_path / 'their tasks.py'}' if you trust it."
    for args in (
        ["play", name],
        ["evaluate", f"{name}/model_1.pt"],
        ["train", "Found", "--checkpoint", name],
    ):
        assert main(args) == 1
        err = capsys.readouterr().err
        assert remedy in err and err.count("\n") == 1, args
    # The lab warns, since it can show the exported scene of a run without the task.
    assert main(["lab", name, "--headless", "--seconds", "0"]) == 1
    assert capsys.readouterr().err.startswith("warning: The run")
    assert "Found" not in list_tasks()


@pytest.mark.parametrize("answer", ["y\n", "YES\n"])
def test_a_user_agrees_once(run, monkeypatch, answer):
    """Ask at the terminal before the first time, and never again for the same file."""
    shown = at_terminal(monkeypatch, answer)
    assert load_task_of(run) == remembered(run)
    assert "their tasks.py', with which you have not trained yet. Run this code?" in (
        shown.getvalue()
    )
    assert "Found" in list_tasks()
    registry.unregister_task("Found")
    shown = at_terminal(monkeypatch, "")
    load_task_of(run)
    assert "Found" in list_tasks() and "Run this code?" not in shown.getvalue()


@pytest.mark.parametrize("answer", ["n\n", "\n", "", "yo\n"])
def test_a_user_refuses(run, monkeypatch, answer):
    """Run nothing and record nothing after any other answer."""
    at_terminal(monkeypatch, answer)
    with pytest.raises(PermissionError, match="not trained yet: give --load"):
        load_task_of(run)
    assert "Found" not in list_tasks() and not is_trusted(remembered(run)[0])


def test_an_option_agrees(run):
    """Load a file that the command line names, for this command alone."""
    argv = ["--checkpoint", str(run.path), "--load", *remembered(run)]
    options, _ = parse_task_command(PolicyOptions, argv, "play")
    assert find_task(options, "play") == "Found"
    assert not is_trusted(remembered(run)[0])


def test_names_are_trusted_as_a_whole(run, tmp_path, monkeypatch):
    """Trust no part of a name with line breaks, and keep what other programs have recorded."""
    trust(["a\n/b.py"])
    trust(["my.tasks", "my.tasks"])
    assert is_trusted("a\n/b.py") and is_trusted("my.tasks")
    assert not is_trusted("/b.py") and not is_trusted("a")
    [file] = Path(tmp_path / "config").rglob("trusted_task_files")
    assert is_windows() or file.stat().st_mode & 0o077 == 0
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "run" / "model_1.pt"))
    with pytest.warns(UserWarning, match="cannot be written, so that commands for runs"):
        trust(["other"])
