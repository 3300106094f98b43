"""Text and progress on terminals, where nothing but `rich` itself adds styles."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


def new_console(*, stderr: bool = False, silent: bool = False) -> Console:
    """Return a console that prints text as it is.

    Units ("[s]"), paths with brackets and names of users are no markup.

    Args:
        stderr: print to the standard error.
        silent: print nothing.
    """
    from rich.console import Console  # slow to import, and few commands need it

    file = None
    if silent:
        file = io.StringIO()
    return Console(file=file, stderr=stderr, markup=False, emoji=False, highlight=False)


def print_line(console: Console, text: str) -> None:
    """Print text as it is; long lines are not broken, so that paths can be copied."""
    console.print(text, soft_wrap=True)


def new_progress(console: Console, *, auto_refresh: bool = True) -> Progress:
    """Return a progress bar with the time left; without a terminal it prints nothing.

    Args:
        console: see `new_console`.
        auto_refresh: draw from a thread; else only where `update` or `refresh` asks for it.
    """
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        auto_refresh=auto_refresh,
        disable=not console.is_terminal,
    )
