"""`manyworlds why [RUN]`: why episodes of a running training have ended."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from manyworlds.cli.parsing import Modules, load_modules, parse


@dataclass(kw_only=True)
class WhyOptions:
    """Say why episodes of a running training have ended.

    The training must have been started with `--remember`, and with `--enter` or `--view`. The last
    seconds are simulated again from what it remembers.
    """

    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[RUN]")] = ""
    """Run folder, or the name of a run in the folder of all runs; without it the newest training
    that runs."""
    episodes: int = 1
    """Number of the worst episodes of the last iterations to explain, the latest first."""
    world: int | None = None
    """World whose present episode is told, instead of the worst ones."""
    log_root: Path = Path("runs")
    """Folder of all runs."""
    load: Modules = ()
    """Python file, or module, that registers tasks."""


def main(argv: list[str]) -> int:
    """Run `manyworlds why`."""
    cfg = parse(WhyOptions, argv, "why")
    load_modules(cfg.load)
    from manyworlds.cli.attach import find_training
    from manyworlds.cli.runs import naming_load
    from manyworlds.envs.episode_story import tell
    from manyworlds.lab.entry import Visitor
    from manyworlds.rl.run_folder import RunFolder
    from manyworlds.tasks.run_configs import configs_of_run

    folder = find_training(cfg.run, cfg.log_root)
    visitor, run = Visitor(folder), RunFolder(folder)
    with naming_load(run):
        env_cfg, _ = configs_of_run(run)
    if cfg.world is not None:
        print(tell(visitor.past(cfg.world), env_cfg))
        return 0
    worst = visitor.worst()[::-1]
    for end in worst[: cfg.episodes]:
        print(end["text"])
        print(tell(visitor.past(end["env_id"], end["step"]), env_cfg))
    if not worst:
        print("No episode has ended yet.")
    return 0
