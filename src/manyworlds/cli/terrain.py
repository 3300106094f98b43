"""`manyworlds terrain [KIND ...]`: look at a terrain, in the browser or in a picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from manyworlds.cli.common import parse


@dataclass(kw_only=True)
class TerrainOptions:
    """Look at a terrain: manyworlds terrain [KIND ...] [OPTIONS].

    KIND names one ready terrain (all, rough, stairs), or kinds such as pyramid_stairs, each of
    which fills a column whose rows become more difficult.
    """

    rows: int | None = None
    """Levels of difficulty; None takes those of a ready terrain, and 3 of kinds."""
    difficulty: tuple[float, float] | None = None
    """Lowest and highest difficulty, 0 to 1."""
    change: Annotated[
        dict[str, bool | float | tuple[float, ...]], tyro.conf.arg(metavar="{FIELD: VALUE, ...}")
    ] = field(default_factory=dict)
    """Fields of the kinds to change, such as {'step_width': 0.5}."""
    seed: int = 0
    """What is random follows from it."""
    robot: str = "none"
    """Who stands in the middle cell: none, quadruped, humanoid, arm, go1, g1 or yam."""
    patches: bool = False
    """Show origins and flat patches."""
    picture: Path | None = None
    """Image file to draw instead of opening the browser."""
    width: int = 1280
    """Of the picture [pixel]."""
    height: int = 720
    """Of the picture [pixel]."""
    seconds: float | None = None
    """Stop after this time [s]; None goes on until Ctrl-C."""
    host: str = "127.0.0.1"
    """Address to serve the page on."""
    port: int = 8080
    """Port to serve the page on; the next free one is taken if it is in use."""


def main(argv: list[str]) -> int:
    """Parse the command line and show the terrain."""
    count = next((i for i, arg in enumerate(argv) if arg.startswith("-")), len(argv))
    cfg = parse(TerrainOptions, TerrainOptions(), argv[count:], "terrain")
    from manyworlds.cli.visualize_terrain import show

    show(argv[:count] or ["all"], cfg)
    return 0
