"""`manyworlds export`: write a file, world, task or run as one MJCF file with its assets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from manyworlds.cli.options import RUNS, Load, LogRoot, MissingMeshes, parse


@dataclass(kw_only=True)
class ExportOptions:
    """Write a scene as one MJCF file with its assets beside it, which plain MuJoCo loads.

    TARGET is a model file (MJCF or URDF) or a mesh file, a world of the gallery, a task, or a run.
    The written file compiles to the same model: numbers keep all digits.
    """

    target: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TARGET")]
    """Model file, mesh file, world of the gallery, task, run folder, or checkpoint."""
    output: Path
    """Folder to write, or an archive if it ends in .zip; only an earlier export is replaced."""
    missing_meshes: MissingMeshes = "error"
    log_root: LogRoot = RUNS
    load: Load = ()


def main(argv: list[str]) -> int:
    """Run `manyworlds export`."""
    from manyworlds.cli.lab import LabOptions, find_target, world_of

    args = parse(ExportOptions, argv, "export")
    cfg = LabOptions(
        target=args.target,
        missing_meshes=args.missing_meshes,
        validate=False,
        log_root=args.log_root,
    )
    written = world_of(find_target(cfg), cfg).export(args.output)
    if written.suffix != ".zip":
        written = written / "scene.xml"
    print(f"wrote {written}")
    return 0
