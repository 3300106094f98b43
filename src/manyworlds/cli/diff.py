"""`manyworlds diff`: say in what two model files differ once they are compiled."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from manyworlds.cli.common import parse


@dataclass(kw_only=True)
class DiffArgs:
    """Compile two model files and say in which options and elements of the same name they differ.

    So one sees what became of a file on its way: `manyworlds diff robot.xml dump/scene.mjb`. The
    exit code is 0 if they are the same, else 1.
    """

    first: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FIRST")]
    """An MJCF, URDF or MJB file."""
    second: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="SECOND")]
    """Another."""
    prefix: str = ""
    """Compare only the elements of the second model whose names begin with this, without it."""
    tolerance: float = 1e-4
    """Up to which relative difference numbers are the same; XML files have six digits."""


def main(argv: list[str]) -> int:
    """Run `manyworlds diff`."""
    args = parse(DiffArgs, None, argv, "diff")
    from manyworlds.lab.diff import diff_models, load_model

    first, second = load_model(args.first), load_model(args.second)
    found = diff_models(first, second, args.prefix, args.tolerance)
    print("\n".join(map(str, found)) or "the same")
    return int(bool(found))
