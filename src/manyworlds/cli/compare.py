"""`manyworlds compare RUN RUN ...`: draw the curves of several runs in one picture."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from manyworlds.cli.errors import UsageError
from manyworlds.cli.options import RUNS, Load, LogRoot, parse
from manyworlds.cli.runs import find_run


@dataclass(kw_only=True)
class CompareOptions:
    """Draw the curves of several runs over training time and over control steps.

    Runs of one task that differ in the seed only are drawn as mean and range.
    """

    runs: Annotated[
        tuple[str, ...],
        tyro.conf.Positional,
        tyro.conf.arg(metavar="RUN RUN ...", help_behavior_hint=""),
    ] = ()
    """Run folders, checkpoints in them, names of runs, or tasks for their newest runs."""
    out: Path = Path("compare.png")
    """File of the picture (PNG)."""
    keys: Annotated[
        tuple[str, ...],
        tyro.conf.arg(
            help="Values to draw: mean_return, steps_per_s, share/physics, share/managers, "
            "share/learner, or logged ones, such as Episode_Reward/upright, "
            "Train/mean_episode_length and Loss/value."
        ),
    ] = ("mean_return",)
    log_root: LogRoot = RUNS
    load: Load = ()


def main(argv: list[str]) -> int:
    """Run `manyworlds compare`."""
    options = parse(CompareOptions, argv, "compare")
    if not options.runs:
        raise UsageError("Name the runs, before --keys: manyworlds compare RUN RUN ...")
    if not options.keys:
        raise UsageError("Name at least one value after --keys, such as mean_return.")
    if options.out.suffix.lower() != ".png":
        raise UsageError(f"--out '{options.out}' must end in .png.")
    from manyworlds.rl.comparison import RunCurves, plot_comparison
    from manyworlds.rl.progress import curve_keys

    folders = [find_run(name, options.log_root).need_folder() for name in options.runs]
    folders = list({folder.path.resolve(): folder for folder in folders}.values())
    runs = [RunCurves.of(folder) for folder in folders]
    replaced = options.out.exists()
    path = plot_comparison(runs, options.keys, options.out)
    for run in runs:
        missing = set(options.keys) - set(curve_keys(run.records))
        if missing:
            names = ", ".join(sorted(missing))
            print(f"warning: '{run.name}' has no values of {names}", file=sys.stderr)
    print(f"picture: {path}" + " (replaced)" * replaced)
    return 0
