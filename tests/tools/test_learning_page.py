"""The page of trainings, written from their ledger."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import learning, learning_page
from benchmarks.learning_goals import GOALS, Goal
from benchmarks.learning_pictures import draw_curves
from manyworlds.rl.progress import IterationRecord
from manyworlds.rl.run_folder import RunFolder, RunOrigin
from manyworlds.tasks import list_tasks

TASK = "Velocity-Flat-Go1"


def line(seed: int, **changes) -> dict:
    """One training, as the ledger has it."""
    terms = {"track_linear_velocity": 0.8 + 0.01 * seed, "action_rate_l2": 1.0}
    return {
        "recorded": "2026-11-22T10:30:00+00:00",
        "time": f"2026-11-22T10:0{seed}:00+00:00",
        "commit": "abc",
        "machine": {"cores": 2, "processor": "CPU", "load": 0.1},
        "task": TASK,
        "limit": 4.0,
        "note": "",
        "seed": seed,
        "num_envs": 512,
        "minutes": 3.9 + 0.01 * seed,
        "control_steps": 3_000_000,
        "control_steps_per_s": 12_000 + seed,
        "learner_share": 0.4,
        "measures": {
            "full episodes": 0.97,
            "linear tracking": 0.8 + 0.05 * seed,
            "angular tracking": 0.8,
            "action rate": 1.2,
        },
        "evaluation": {
            "episodes": 256,
            "episode_length_s": 20.0,
            "mean_length_s": 19.0,
            "ends": {"time_out": 250, "fell_over": 6, "diverged": 0},
            "weights": {"track_linear_velocity": 2.0, "action_rate_l2": -0.1},
            "terms": terms,
        },
        "curves": {"track_linear_velocity": [[1.0, 0.1], [2.0, 0.5], [3.9, terms_end(seed)]]},
        **changes,
    }


def terms_end(seed: int) -> float:
    """Last value of a curve."""
    return 0.7 + 0.01 * seed


@pytest.fixture
def page(tmp_path, monkeypatch):
    """Write a page from lines of the ledger; return its text."""

    def write(*lines: dict) -> str:
        ledger, page = tmp_path / "ledger.jsonl", tmp_path / "page.md"
        ledger.write_text("".join(json.dumps(line) + "\n" for line in lines))
        page.write_text("Before.\n" + learning_page._MARK + "old\n")
        monkeypatch.setattr(learning_page, "LEDGER", ledger)
        monkeypatch.setattr(learning_page, "PAGE", page)
        learning_page.write_page()
        return page.read_text()

    return write


def test_the_page_shows_the_newest_trainings_of_each_task(page):
    """Put all seeds of the newest measurement into one row, with the goal and who reaches it."""
    old = line(7, recorded="2026-11-21T10:00:00+00:00")
    text = page(old, line(1), line(2), line(3, task="Reach", limit=None, measures={"reward": 0.5}))
    assert text.startswith("Before.\n") and "old\n" not in text
    assert "| [Velocity-Flat-Go1](#velocity-flat-go1) | 3.9 / 3.9 | 3.0 / 3.0 " in text
    assert "linear tracking 0.85 / 0.90" in text
    assert f"| {GOALS[TASK]} | 2 of 2 |" in text
    assert "`python -m benchmarks.learning Velocity-Flat-Go1 --minutes 4 --seeds 1 2`" in text
    assert "`python -m benchmarks.learning Reach --seeds 3`" in text
    assert "| track_linear_velocity | 0.810 / 0.820 | 2 |" in text
    assert "12,001 / 12,002 control steps per second" in text
    assert "terminations: time_out 250, fell_over 6." in text


@pytest.mark.parametrize("count", [1, 3])
def test_curves_of_seeds_are_drawn(tmp_path, count):
    """Draw one seed, or several with their range."""
    draw_curves([line(seed) for seed in range(count)], tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 5000


def test_the_curve_of_success_counts_episodes(tmp_path):
    """Draw the share of episodes that end with success, for a task whose success ends them."""
    ends = ({}, {"success": 0.0, "time_out": 3.0}, {"success": 6.0, "time_out": 2.0})
    records = [
        IterationRecord(i + 1, 3, None, 1.0, 1.0, 1.0, scalars=success_scalars(counts))
        for i, counts in enumerate(ends)
    ]
    share = learning.success_share(records)
    assert np.array_equal(share, [np.nan, 0.0, 0.75], equal_nan=True)
    pushed = line(1, curves={"success": [[1.0, 0.0], [2.0, 0.75]]})
    pushed["evaluation"]["ends"] = {"time_out": 64, "success": 192}
    draw_curves([pushed], tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 5000
    with pytest.raises(KeyError):
        draw_curves([line(1, curves=pushed["curves"])], tmp_path / "curves.png")


def success_scalars(counts: dict[str, float]) -> dict[str, float | None]:
    """Logged numbers of episodes that terminations end."""
    return {f"Episode_Termination/{name}": count for name, count in counts.items()}


def test_goals_are_bounds_on_both_sides():
    """Keep minimum, maximum and time."""
    goal = Goal(5.0, {"a": 0.5}, {"b": 1.5})
    assert goal.is_met({"a": 0.5, "b": 1.5}, 5.0)
    assert not goal.is_met({"a": 0.49, "b": 1.5}, 5.0)
    assert not goal.is_met({"a": 0.5, "b": 1.51}, 5.0)
    assert not goal.is_met({"a": 0.5, "b": 1.5}, 5.1)
    assert str(goal) == "a ≥ 0.5, b ≤ 1.5 in 5 min"
    assert set(GOALS) <= set(list_tasks())


def test_a_recorded_run_has_the_circumstances_of_its_training(tmp_path, monkeypatch):
    """Record a finished run: time, machine and versions are those of its training."""
    origin = {
        "started": "2026-01-02T03:04:05+00:00",
        "machine": {"processor": "Other", "cores": 64, "load": 0.5},
        "versions": {"mujoco": "3.9.9"},
    }
    run = RunFolder.reserve(tmp_path, "quadruped", "").begin(TASK, {}, {}, RunOrigin(**origin))
    old = RunFolder.reserve(tmp_path, "quadruped", "old").begin(TASK, {}, {})
    monkeypatch.setattr(learning, "_results", lambda task, run: {"run": run.path.name})
    monkeypatch.setattr(learning, "_policy", lambda task, run: ())
    monkeypatch.setattr(learning, "LEDGER", tmp_path / "ledger.jsonl")
    for name in ("draw_curves", "draw_policy", "write_page"):
        monkeypatch.setattr(learning, name, lambda *args: None)
    monkeypatch.setattr("sys.argv", ["learning", TASK, "--runs", str(run.path)])
    assert learning.main() == 0
    (line,) = map(json.loads, learning.LEDGER.read_text().splitlines())
    assert line["time"] == origin["started"] and line["commit"] is None
    assert line["machine"] == origin["machine"] and line["versions"] == origin["versions"]
    monkeypatch.setattr("sys.argv", ["learning", TASK, "--runs", str(old.path)])
    with pytest.raises(ValueError, match="does not record machine, started, versions"):
        learning.main()
