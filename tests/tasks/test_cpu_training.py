"""Training times on a CPU, as `manyworlds list` shows them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from benchmarks.__main__ import LEDGER
from benchmarks.learning_page import newest_trainings
from benchmarks.workloads import SLOW_TASKS
from manyworlds.tasks import cpu_training
from tests.tasks.one_model import ONE_MODEL_TASKS

PAGE = Path(__file__).parents[2] / "docs" / "learning.md"


def test_measured_tasks_have_their_figure():
    """Give the time of each task that docs/learning.md measures, and "hours" for failures."""
    rows = re.findall(
        r"^\| \[(.+?)\]\(#\S+\) \| ([\d./ ]+) \| (.+)", PAGE.read_text(), re.MULTILINE
    )
    assert len(rows) >= 5
    newest = {lines[0]["task"]: lines for lines in newest_trainings()}
    for task, minutes, results in rows:
        shown = re.search(r"(\d+) minutes?", cpu_training(task))
        assert shown is not None, task
        assert [f"{line['minutes']:.1f}" for line in newest[task]] == minutes.split(" / ")
        for line in newest[task]:
            assert abs(line["minutes"] - int(shown[1])) < 0.5, task
        failed = "full episodes 0.00" in results
        assert cpu_training(task).startswith("hours") == failed, task


def test_other_tasks_have_their_speed():
    """Give the measured speed of each task without a training, and say what it means."""
    trained = {lines[0]["task"] for lines in newest_trainings()}
    assert set(SLOW_TASKS) == set(ONE_MODEL_TASKS) - trained
    speeds = {}
    for text in LEDGER.read_text().splitlines():
        line = json.loads(text)
        speeds[line["workload"]] = line.get("training_steps_per_s")
    for task in SLOW_TASKS:
        shown = re.fullmatch(
            r"(hours|needs a GPU): ([\d,]+) control steps per second on 2 cores", cpu_training(task)
        )
        assert shown is not None, task
        speed = speeds[f"train-cpu-{task.lower()}"]
        assert abs(int(shown[2].replace(",", "")) / speed - 1.0) < 0.05, task
        # A GPU is needed where ten million control steps take more than half a day.
        assert (shown[1] == "needs a GPU") == (1e7 / speed > 12 * 3600), task
