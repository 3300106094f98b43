"""`manyworlds diff`: compare two compiled model files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from manyworlds.cli.options import parse


@dataclass(kw_only=True)
class DiffOptions:
    """Compile two model files and list their different options and elements.

    Elements are matched by name. For example, `manyworlds diff robot.xml dump/scene.mjb` shows what
    a pipeline changed in a model. The exit code is 0 if the models are the same, else 1.
    """

    first: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FIRST")]
    """MJCF, URDF or MJB file."""
    second: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="SECOND")]
    """File to compare it with."""
    prefix: str = ""
    """Compare only elements of the second model with this prefix, which is removed first."""
    tolerance: float = 1e-4
    """Largest relative difference of equal numbers; XML files have six digits."""


def main(argv: list[str]) -> int:
    """Run `manyworlds diff`."""
    args = parse(DiffOptions, argv, "diff")
    from manyworlds.lab.world.diff import diff_models, load_model

    first = load_model(args.first)
    second = load_model(args.second)
    found = diff_models(first, second, args.prefix, args.tolerance)
    print("\n".join(map(str, found)) or "the same")
    return int(bool(found))
