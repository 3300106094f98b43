"""Progress of training, as a live line in the terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

from manyworlds.utils.terminal import print_line

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console

    from manyworlds.rl.progress import IterationRecord

_PRINT_EVERY_S = 60.0
_BAR_COLUMNS = 100
"""Width of a terminal that has room for a bar [columns]."""


class TrainingProgress:
    """Line with iteration, mean return, episode length, terminations, speed, and time left.

    Without a terminal it prints such a line at the first iteration, at each tenth of all, at the
    last, and after a minute without one.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._printed = time.monotonic()
        self._begun = self._printed
        self._first: int | None = None
        columns: list[ProgressColumn] = [
            TextColumn("{task.fields[count]}", markup=False),
            TextColumn("{task.description}", markup=False),
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
        is_wide = not self._console.is_terminal or self._console.width >= _BAR_COLUMNS
        text = record.describe(shares=is_wide)
        self._progress.update(
            self._task, total=total, completed=done, count=count, description=text
        )
        now = time.monotonic()
        due = done in (1, total) or done % max(1, total // 10) == 0
        if not self._console.is_terminal and (due or now - self._printed > _PRINT_EVERY_S):
            self._printed = now
            if self._first is not None and self._first < done < total:
                left = (now - self._begun) / (done - self._first) * (total - done)
                text += f", {minutes(left)} left"
            print_line(self._console, f"iteration {count}: {text}")
        if self._first is None:
            self._first = done
            self._begun = now


def minutes(seconds: float) -> str:
    """Return a duration as minutes and seconds, or as hours and minutes."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02} min"
    return f"{whole // 60}:{whole % 60:02} min"
