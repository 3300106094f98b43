"""`manyworlds terrain [KIND ...]`: show a terrain on a web page, or draw it into a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from manyworlds.cli.errors import UsageError
from manyworlds.cli.options import Host, Port, WebOrigins, parse
from manyworlds.cli.waiting import check_seconds

_PYTHON_SYNTAX = tyro.conf.UsePythonSyntaxForLiteralCollections


@dataclass(kw_only=True)
class TerrainOptions:
    """Show a terrain on a web page, or draw it into a file."""

    kinds: Annotated[
        tuple[str, ...],
        tyro.conf.Positional,
        tyro.conf.arg(
            metavar="[KIND ...]",
            help="One ready terrain (all, rough, high-steps, stairs), or kinds such as "
            "pyramid_stairs, one per column.",
        ),
    ] = ("all",)
    rows: int | None = None
    """Number of rows; None uses the number of a ready terrain, and 3 for kinds."""
    difficulty: Annotated[tuple[float, float] | None, _PYTHON_SYNTAX] = None
    """Difficulty of the first and the last row, such as "(0.2, 0.8)"; None for the terrain's."""
    change: Annotated[
        dict[str, bool | float | tuple[float, ...]],
        _PYTHON_SYNTAX,
        tyro.conf.arg(metavar="{FIELD: VALUE, ...}"),
    ] = field(default_factory=dict)
    """Fields of the kinds to change, such as "{'step_width': 0.5}"."""
    seed: int = 0
    """Random seed."""
    robot: str = "none"
    """Robot in the middle cell: none, quadruped, humanoid, arm, go1, g1 or yam."""
    patches: bool = False
    """Show origins and flat patches."""
    picture: Path | None = None
    """Image file to draw, instead of serving a page."""
    width: int = 1280
    """Width of the image [pixels]."""
    height: int = 720
    """Height of the image [pixels]."""
    seconds: float | None = None
    """Time until the page stops [s]; None runs until Ctrl-C."""
    host: Host = "127.0.0.1"
    port: Port = 8080
    web_origin: WebOrigins = ()


def main(argv: list[str]) -> int:
    """Run `manyworlds terrain`."""
    options = parse(TerrainOptions, argv, "terrain")
    check_seconds(options.seconds)
    if options.picture is not None:
        _check_picture(options.picture)
    from manyworlds.cli.terrain_view import show

    show(options)
    return 0


def _check_picture(path: Path) -> None:
    """Refuse a file that cannot be written, before the terrain is built."""
    from PIL import Image

    endings = Image.registered_extensions()
    if endings.get(path.suffix.lower()) not in Image.SAVE:
        raise UsageError(f"--picture '{path}' must end in .png, .jpg or another ending of images.")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"There is no folder '{path.parent}' for --picture '{path.name}': make it first."
        )
