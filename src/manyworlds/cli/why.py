"""`manyworlds why [RUN]`: explain why episodes of a running training ended."""

from __future__ import annotations

from dataclasses import dataclass

from manyworlds.cli.options import RUNS, Load, LogRoot, RunningTraining, parse
from manyworlds.cli.runs import running_training
from manyworlds.cli.task_files import load_task_of


@dataclass(kw_only=True)
class WhyOptions:
    """Explain why episodes of a running training ended.

    The training must have been started with `--remember`, and with `--enter` or `--view`. The last
    seconds are simulated again from its memory.
    """

    run: RunningTraining = ""
    episodes: int = 1
    """Number of the worst episodes of the last iterations to explain, the latest first."""
    world: int | None = None
    """World whose current episode is explained, instead of the worst ones."""
    log_root: LogRoot = RUNS
    load: Load = ()


def main(argv: list[str]) -> int:
    """Run `manyworlds why`."""
    cfg = parse(WhyOptions, argv, "why")
    run = running_training(cfg.run, cfg.log_root)
    from manyworlds.lab.training import Visitor
    from manyworlds.live.story import episode_story
    from manyworlds.tasks.run_configs import configs_of_run

    visitor = Visitor(run.path)
    load_task_of(run)
    env_cfg, _ = configs_of_run(run)
    if cfg.world is not None:
        print(episode_story(visitor.past(cfg.world), env_cfg))
        return 0
    worst = visitor.worst()[::-1]
    for end in worst[: cfg.episodes]:
        print(end["text"])
        print(episode_story(visitor.past(end["env_id"], end["step"]), env_cfg))
    if not worst:
        print("No episode has ended yet.")
    return 0
