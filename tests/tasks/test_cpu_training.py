"""Training times on a CPU, as `manyworlds list` shows them."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.learning_page import newest_trainings
from manyworlds.tasks import cpu_training

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
    assert cpu_training("Velocity-Rough-G1") == ""
