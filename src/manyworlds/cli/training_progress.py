"""Progress of training, as a live line in the terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from types import TracebackType

    from manyworlds.rl.progress import IterationRecord

_PRINT_EVERY_S = 60.0
_BAR_COLUMNS = 100
"""Width of a terminal that has room for a bar [columns]."""


class TrainingProgress:
    """Line with iteration, mean return, control steps per second, shares of time, and time left.

    Without a terminal it prints such a line at the first iteration, at each tenth of all, at the
    last, and after a minute without one.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._printed = time.monotonic()
        columns: list[ProgressColumn] = [
            TextColumn("{task.fields[count]}"),
            TextColumn("{task.description}"),
            TimeRemainingColumn(compact=True),
        ]
        if console.width >= _BAR_COLUMNS:
            columns.insert(1, BarColumn(bar_width=10))
        self._progress = Progress(
            *columns,
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("first iteration ...", total=None, count="")

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
        done = record.iteration
        total = record.total
        count = f"{done}/{total}"
        text = describe(record)
        self._progress.update(
            self._task, total=total, completed=done, count=count, description=text
        )
        now = time.monotonic()
        due = done in (1, total) or done % max(1, total // 10) == 0
        if not self._console.is_terminal and (due or now - self._printed > _PRINT_EVERY_S):
            self._printed = now
            self._console.print(f"iteration {count}: {text}", highlight=False, soft_wrap=True)


def describe(record: IterationRecord) -> str:
    """Return mean return, speed, and the shares of time of an iteration."""
    shown = "-"
    if record.mean_return is not None:
        shown = f"{record.mean_return:.2f}"
    parts = [f"return {shown}", f"{record.steps_per_s:,.0f} steps/s"]
    shares = " ".join(f"{name} {100 * share:.0f}" for name, share in record.shares.items())
    if shares:
        parts.append(f"{shares} %")
    return ", ".join(parts)
