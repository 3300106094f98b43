"""Checkpoints to choose from on a page."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from manyworlds.rl.run_folder import RunFolder
    from manyworlds.viewer.base import PolicyProtocol

_UNITS = (("d", 86400), ("h", 3600), ("min", 60))


@dataclass
class CheckpointManager:
    """Source of checkpoints."""

    current_name: str
    """Name of the checkpoint that is played."""
    fetch_available: Callable[[], list[tuple[str, str]]]
    """Returns names and ages of the checkpoints, the newest first."""
    load_checkpoint: Callable[[str], PolicyProtocol]
    """Returns the policy of a checkpoint, by name."""
    run_name: str | None = None
    run_url: str | None = None
    run_status: str | None = None
    follow: bool = field(default=False, kw_only=True)
    """True to load a newer checkpoint as soon as there is one."""


def format_time_ago(seconds: int) -> str:
    """Format an elapsed time [s]: '3min ago'."""
    for unit, length in _UNITS:
        if seconds >= length:
            return f"{seconds // length}{unit} ago"
    return f"{max(int(seconds), 0)}s ago"


def checkpoints_of(
    run: RunFolder, current: Path, load: Callable[[Path], PolicyProtocol], *, follow: bool = False
) -> CheckpointManager:
    """Return the checkpoints of a local run, also of one that continues.

    Args:
        run: folder of the run.
        current: name of the checkpoint that is played.
        load: function that creates the policy of a checkpoint.
        follow: whether to load a newer checkpoint as soon as there is one.
    """

    def fetch() -> list[tuple[str, str]]:
        now = time.time()
        found = reversed(run.checkpoints())
        return [(p.name, format_time_ago(int(now - p.stat().st_mtime))) for p in found]

    return CheckpointManager(
        current_name=current.name,
        fetch_available=fetch,
        load_checkpoint=lambda name: load(run.path / name),
        run_name=run.path.name,
        follow=follow,
    )
