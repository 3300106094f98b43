"""Files and modules that register tasks."""

from __future__ import annotations

import sys
from unittest import mock

import pytest

from manyworlds.cli.task_files import absolute, load_modules, remembered
from manyworlds.rl.run_folder import RunFolder
from manyworlds.utils.config import dump_yaml


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
