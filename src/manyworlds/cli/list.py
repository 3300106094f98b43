"""`manyworlds list`: list tasks with their training times, or worlds, or randomization."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import tyro

from manyworlds.cli.errors import EXPECTED, UsageError, one_line
from manyworlds.cli.options import Load, parse


@dataclass(kw_only=True)
class ListOptions:
    """List the tasks, the worlds of the gallery, or the randomization of a task.

    A line has a task's name and, if it was measured, its training time on a CPU.
    """

    keyword: Annotated[
        str, tyro.conf.Positional, tyro.conf.arg(metavar="[KEYWORD]", help_behavior_hint="")
    ] = ""
    """List only the tasks whose names contain this text; a whole name also prints its terms."""
    randomization: Annotated[str | None, tyro.conf.arg(metavar="TASK")] = None
    """Print what this task randomizes: field, elements, distribution, mode and cost."""
    worlds: bool = False
    """List the worlds of the gallery, which `manyworlds lab NAME` opens."""
    load: Load = ()


def main(argv: list[str]) -> int:
    """Run `manyworlds list`."""
    from manyworlds.tasks import cpu_training, list_tasks

    options = parse(ListOptions, argv, "list")
    if options.randomization is not None:
        if options.keyword:
            raise UsageError("Give either a keyword or --randomization TASK, not both.")
        from manyworlds.cli.randomization_table import randomization_table

        print(randomization_table(options.randomization))
        return 0
    if options.worlds:
        from manyworlds.lab.world.gallery import GALLERY

        texts = {n: world.text for n, world in GALLERY.items() if options.keyword.lower() in n}
        if not texts:
            raise ValueError(
                f"No world contains '{options.keyword}'. Available: {', '.join(GALLERY)}."
            )
        width = max(map(len, texts))
        print("\n".join(f"{name:<{width}}  {text}" for name, text in texts.items()))
        return 0
    names = [name for name in list_tasks() if options.keyword.lower() in name.lower()]
    if not names:
        raise ValueError(
            f"No task contains '{options.keyword}'. Available: {', '.join(list_tasks())}."
        )
    width = max(map(len, names))
    print("\n".join(f"{name:<{width}}  {cpu_training(name)}".rstrip() for name in names))
    if options.keyword in names:
        try:
            print(_tables(options.keyword))
        except EXPECTED as error:
            print(f"note: its terms cannot be shown: {one_line(error)}", file=sys.stderr)
    return 0


def _tables(task: str) -> str:
    """Return the tables of a task, of one world of it."""
    from manyworlds.cli.task_tables import task_tables
    from manyworlds.envs import make_env
    from manyworlds.tasks import load_env_cfg

    cfg = load_env_cfg(task)
    cfg.scene.num_envs = max(1, len(cfg.scene.buckets))
    env = make_env(cfg, device="cpu")
    try:
        return task_tables(env)
    finally:
        env.close()
