"""Commands for a task whose worlds have different topology."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
import torch

from manyworlds.cli.main import main
from manyworlds.tasks import registry

pytest.importorskip("rsl_rl", reason="training needs the extra 'train'")
pytestmark = pytest.mark.filterwarnings("ignore:dr.body_mass does not scale inertia")

TASK = str(Path(__file__).with_name("bucket_task.py"))


@pytest.fixture(autouse=True)
def fresh_registry() -> Iterator[None]:
    """Let each test load the task, whatever was loaded before."""
    with mock.patch.dict(registry._TASKS):
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train for two iterations; return the folder of all runs."""
    root = tmp_path_factory.mktemp("runs")
    with mock.patch.dict(registry._TASKS):
        assert main(["train", "Chains", "--load", TASK, "--log-root", str(root)]) == 0
    return root


def run_of(runs: Path) -> Path:
    """Return the folder of the first run."""
    return sorted(runs.glob("*/*"))[0]


def test_training_exports_each_bucket(runs: Path, capsys: pytest.CaptureFixture[str]):
    """Write policy and scene of each bucket, which plain MuJoCo runs."""
    folder = run_of(runs)
    for name in ("two", "three", "four"):
        assert (folder / "buckets" / name / "policy.onnx").is_file()
        assert (folder / "buckets" / name / "scene" / "scene.xml").is_file()
    policy = str(folder / "buckets" / "two" / "policy.onnx")
    assert main(["play", "--onnx", policy, "--headless", "--steps", "5"]) == 0
    capsys.readouterr()


def test_resumes_as_without_a_pause(runs: Path):
    """Get the same weights in four iterations, with a pause after two or without."""
    task = ["train", "Chains", "--load", TASK, "--agent.max-iterations", "4"]
    weights = []
    for arguments in (["--checkpoint", str(run_of(runs))], []):
        root = runs.parent / f"longer{len(weights)}"
        with mock.patch.dict(registry._TASKS):
            assert main([*task, "--log-root", str(root), *arguments]) == 0
        [path] = root.glob("*/*/model_3.pt")
        weights.append(torch.load(path, weights_only=True)["actor_state_dict"])
    for name, value in weights[0].items():
        assert torch.equal(value, weights[1][name]), name


def test_evaluates_each_bucket(runs: Path, capsys: pytest.CaptureFixture[str]):
    """Print a line for each bucket, or the table of one."""
    command = ["evaluate", str(run_of(runs)), "--num-envs", "6"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "2 episodes of at most 0.3 s in each bucket" in printed
    assert all(f"│ {name} " in printed for name in ("two", "three", "four"))
    assert main([*command, "--bucket", "three"]) == 0
    assert "6 episodes" in capsys.readouterr().out


def test_walks_into_a_bucket(runs: Path, capsys: pytest.CaptureFixture[str]):
    """Open a bucket of a run or of a task in the lab, with its own policy."""
    once = ["--headless", "--seconds", "0.1"]
    assert main(["lab", str(run_of(runs)), "--bucket", "four", *once]) == 0
    assert main(["lab", str(run_of(runs)), "--stepper", "environment", *once]) == 0
    assert "bucket: two; --bucket chooses among two, three, four" in capsys.readouterr().out
    task = ["lab", "Chains", "--bucket", "three", "--world", "2", *once]
    assert main(task) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["play", "RUN", "--bucket", "nine", "--video"], "no bucket 'nine': choose one of two"),
        (["lab", "RUN", "--bucket", "nine"], "has no bucket 'nine': choose one of two, three"),
        (["lab", "Cartpole-Balance", "--bucket", "two"], "this task has no buckets; leave"),
        (["train", "Chains", "--load", TASK, "--enter"], "need one model for all worlds"),
    ],
)
def test_tells_what_a_bucket_cannot(
    runs: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
):
    """Name the buckets that there are, or what needs one model."""
    words = [str(run_of(runs)) if word == "RUN" else word for word in arguments]
    assert main([*words, "--log-root", str(runs.parent / "other")]) != 0
    assert message in capsys.readouterr().err
