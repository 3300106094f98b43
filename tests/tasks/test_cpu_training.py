"""Training times on a CPU, as `manyworlds list` shows them."""

from __future__ import annotations

import re
from pathlib import Path

from manyworlds.tasks import cpu_training

PAGE = Path(__file__).parents[2] / "docs" / "learning.md"


def test_measured_tasks_have_their_figure():
    """Give the time of each task that docs/learning.md measures, and "hours" for failures."""
    sections = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    assert len(sections) >= 5
    for section in sections:
        task, text = section.split("\n", 1)
        minutes = re.search(r"Training: ([\d.]+) minutes", text)
        assert minutes is not None
        shown = re.search(r"(\d+) minutes?", cpu_training(task))
        assert shown is not None, task
        assert abs(float(minutes[1]) - int(shown[1])) < 0.5, task
        failed = re.search(r"terminations: (fell_over \d+)?\.\n", text)
        assert cpu_training(task).startswith("hours") == (failed is not None), task
    assert cpu_training("Velocity-Rough-G1") == ""
