"""Progress of training, as a live line in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from types import TracebackType

    from manyworlds.rl.runner import IterationRecord


class TrainingProgress:
    """Line with iteration, mean return, env-steps/s and time left; a few lines without terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("training"),
            BarColumn(bar_width=30),
            TextColumn("iteration {task.completed}/{task.total}"),
            TextColumn("return {task.fields[mean_return]}"),
            TextColumn("{task.fields[speed]} env-steps/s"),
            TimeRemainingColumn(compact=True),
            TextColumn("left"),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("", total=None, mean_return="-", speed="-")

    def __enter__(self) -> TrainingProgress:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def update(self, record: IterationRecord) -> None:
        """Show the report of an iteration."""
        shown = "-" if record.mean_return is None else f"{record.mean_return:.2f}"
        speed = f"{record.steps_per_s:,.0f}"
        self._progress.update(
            self._task,
            total=record.total,
            completed=record.iteration,
            mean_return=shown,
            speed=speed,
        )
        every = max(1, record.total // 10)
        if not self._console.is_terminal and record.iteration % every == 0:
            self._console.print(
                f"iteration {record.iteration}/{record.total}: return {shown}, {speed} env-steps/s"
            )
