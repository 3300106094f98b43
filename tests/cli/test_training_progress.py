"""The line of progress, on terminals and elsewhere."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from manyworlds.cli import training_progress
from manyworlds.cli.training_progress import TrainingProgress
from manyworlds.rl.progress import IterationRecord


def record(iteration: int, total: int, env_time: float | None = 0.9) -> IterationRecord:
    """Make a record of 1.5 s: 40 % physics, 20 % managers, 40 % learner."""
    physics = None if env_time is None else 0.6
    scalars = {"Train/mean_episode_length": 1000.0}
    return IterationRecord(
        iteration, total, 123.45, 24353.2, 1.0, 0.5, env_time, physics, 0.03, scalars
    )


@pytest.mark.parametrize("width", [80, 140])
def test_one_line_is_updated_on_a_terminal(width):
    """Show everything in one line of 80 columns, and a bar where there is room."""
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None)
    with TrainingProgress(console) as progress:
        for iteration in (99, 100):
            progress.update(record(iteration, 300))
    lines = [line.strip() for line in re.split(r"[\r\n]|\x1b\[\S*?[A-Za-z]", out.getvalue())]
    shown = "return 123.45, length 1000, 3 % terminated, 24,353 control steps/s"
    if width == 140:
        shown += ", physics 40 managers 20 learner 40 %"
    last = [line for line in lines if shown in line][-1]
    assert last.startswith("100/300 ") and re.search(r"(\d\d|--):(\d\d|--)$", last)
    assert out.getvalue().count("\n") == 1 and ("━" in last) == (width == 140)


def test_few_lines_are_printed_elsewhere(monkeypatch):
    """Print the first, each tenth and the last iteration, and one after a minute of silence."""
    now = iter([0.0, *range(23), 22 + 61.0, 84.0, 85.0])
    monkeypatch.setattr(training_progress.time, "monotonic", lambda: next(now))
    out = io.StringIO()
    with TrainingProgress(Console(file=out)) as progress:
        for iteration in (*range(1, 24), 27, 99, 100):
            progress.update(record(iteration, 100, None if iteration == 27 else 0.9))
    lines = out.getvalue().splitlines()
    printed = [int(re.match(r"iteration (\d+)/100: return 123", line)[1]) for line in lines]
    assert printed == [1, 10, 20, 27, 100]
    assert lines[0].endswith("control steps/s, physics 40 managers 20 learner 40 %")
    assert lines[3].endswith("24,353 control steps/s, 3:53 min left")
    assert not any("left" in line for line in (lines[0], lines[-1]))
