"""The run that a command line means."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from manyworlds.cli.runs import find_run

ROOT = Path("runs")


@pytest.fixture(autouse=True)
def runs(tmp_path, monkeypatch) -> None:
    """Write runs of two tasks, one of them without a checkpoint, and a loose checkpoint."""
    monkeypatch.chdir(tmp_path)
    for age, (name, task, count) in enumerate(
        [("arm/new", "Arm", 0), ("arm/old", "Arm", 3), ("cart/only", "Cart", 1)]
    ):
        folder = ROOT / name
        (folder / "params").mkdir(parents=True)
        (folder / "params" / "run.yaml").write_text(f"task: {task}\n")
        for i in range(count):
            path = folder / f"model_{i}.pt"
            path.write_text("")
            os.utime(path, (1000 - age, 1000 - age))
    (ROOT / "arm" / "old" / "policy.onnx").write_text("")
    Path("loose.pt").write_text("")


@pytest.mark.parametrize(
    ("name", "folder", "file"),
    [
        (None, "runs/arm/old", "model_2.pt"),
        ("", "runs/arm/old", "model_2.pt"),
        ("Cart", "runs/cart/only", "model_0.pt"),
        ("runs/cart/only", "runs/cart/only", "model_0.pt"),
        ("cart/only", "runs/cart/only", "model_0.pt"),
        ("only", "runs/cart/only", "model_0.pt"),
        ("old/model_1.pt", "runs/arm/old", "model_1.pt"),
        ("runs/arm/old/policy.onnx", "runs/arm/old", "policy.onnx"),
        ("runs/arm/new", "runs/arm/new", None),
    ],
)
def test_names_of_runs(name, folder, file):
    """Take a folder, a name, a checkpoint, a task, or nothing for the newest run."""
    found = find_run(name, ROOT)
    assert found.need_folder().path.resolve() == Path(folder).resolve()
    assert (found.checkpoint and found.checkpoint.name) == file
    assert found.need_task() == ("Cart" if "cart" in folder else "Arm")


def test_the_present_folder_is_a_name(monkeypatch):
    """Name the run in which one is by a dot: it keeps the name of its folder."""
    monkeypatch.chdir(ROOT / "arm" / "old")
    assert find_run(".", ROOT).need_folder().path.name == "old"


def test_the_newest_run_of_a_task_is_chosen_by_patterns():
    """Match names of runs and checkpoints as a whole."""
    found = find_run(None, ROOT, "Arm", load_run="o.*", load_checkpoint="model_[01].pt")
    assert found.need_checkpoint() == ROOT / "arm" / "old" / "model_1.pt"
    with pytest.raises(FileNotFoundError, match="no trained run of task 'Arm'.* load_run='l'"):
        find_run(None, ROOT, "Arm", load_run="l")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none", "There is no run 'none'. Give the path of a run folder"),
        ("none.pt", "There is no checkpoint 'none.pt'. Give the path"),
        ("runs/arm", "'runs/arm'. That is a folder of runs: name one of them, such as 'runs/arm/"),
        ("Reach", "There is no trained run of task 'Reach' in 'runs'"),
        ("Reahc", "There is no run 'Reahc'. Did you mean 'Reach'?"),
    ],
)
def test_a_wrong_name_has_a_remedy(name, message):
    """Say what there is instead of a run that does not exist."""
    with pytest.raises(FileNotFoundError) as error:
        find_run(name, ROOT)
    assert message in str(error.value)


def test_what_a_run_lacks_is_named():
    """Say that there is no checkpoint yet, or no run folder."""
    with pytest.raises(ValueError, match="The run 'runs/arm/new' has no checkpoint yet: wait"):
        find_run("new", ROOT).need_checkpoint()
    loose = find_run("loose.pt", ROOT)
    assert loose.need_checkpoint() == Path("loose.pt")
    for need in (loose.need_folder, loose.need_task):
        with pytest.raises(FileNotFoundError, match="no run 'loose.pt': the file is in no run"):
            need()
