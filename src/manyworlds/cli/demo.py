"""`manyworlds demo`: train, evaluate and show a policy that pushes objects of many shapes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from manyworlds.cli.options import RUNS, Host, Port, WebOrigins, parse


@dataclass(kw_only=True)
class DemoOptions:
    """Train a policy that pushes objects of many shapes, evaluate it, film it, and show it."""

    num_envs: int | None = None
    """Number of parallel worlds in training; None uses the task's number."""
    iterations: int | None = None
    """Number of training iterations; None uses the task's number."""
    seed: int = 42
    """Seed of training and evaluation."""
    log_root: Path = RUNS
    """Folder of all runs, in which the new run folder is made."""
    evaluation_worlds: int = 100
    """Number of worlds of each shape in the evaluation."""
    view: bool = True
    """In a terminal, serve a web page of the trained policy at the end."""
    host: Host = "127.0.0.1"
    port: Port = 8080
    web_origin: WebOrigins = ()


def main(argv: list[str]) -> int:
    """Run `manyworlds demo`."""
    cfg = parse(DemoOptions, argv, "demo")
    from manyworlds.cli.demo_run import run

    return run(cfg)
