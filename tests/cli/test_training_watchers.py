"""Lines that `manyworlds train` prints while it trains."""

import io
from types import SimpleNamespace

from rich.console import Console

from manyworlds.cli.training_watchers import TrainingWatchers
from manyworlds.rl.run_edits import EditRecord


def test_edits_are_printed():
    """Apply an edit: a line of the terminal says which, and after how many iterations."""
    console = Console(file=io.StringIO(), width=40)
    runner = SimpleNamespace(edits=SimpleNamespace(on_applied=None))
    options = SimpleNamespace(video=False, view=False, enter=False)
    TrainingWatchers(options, console).start(runner, None)
    runner.edits.on_applied(EditRecord(3, "", {}, "rewards.upright.weight = [2.0]"))
    told = "edit after iteration 3: rewards.upright.weight = [2.0]\n"
    assert console.file.getvalue() == told
