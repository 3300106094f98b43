"""`manyworlds demo`: train a pusher of objects of many shapes, evaluate it and look at it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from manyworlds.cli.common import parse


@dataclass(kw_only=True)
class DemoConfig:
    """Train a pusher of objects of many shapes, then watch it."""

    num_envs: int | None = None
    """Parallel worlds to train in; None takes the task's own number."""
    iterations: int | None = None
    """Training iterations; None takes the task's own."""
    seed: int = 42
    log_root: Path = Path("runs")
    """Where the run folder is made."""
    evaluation_worlds: int = 100
    """Worlds of each shape in which the policy is judged."""
    view: bool = True
    """On a terminal, show the trained policy in the browser at the end."""
    port: int = 8080
    """Port of the page."""


def main(argv: list[str]) -> int:
    """Parse the command line and run the demo."""
    cfg = parse(DemoConfig, DemoConfig(), argv, "demo")
    from manyworlds.cli.demo_run import run

    return run(cfg)
