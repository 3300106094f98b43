"""`manyworlds new-task`: write a Python file with a new task."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from manyworlds.cli.parsing import parse
from manyworlds.utils.files import write_atomic

_TEMPLATE = "manyworlds.tasks.reach.reach_env_cfg"
_BEFORE = "from manyworlds.sim import MujocoCfg, SimulationCfg\n"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(-[A-Za-z0-9]+)*")


@dataclass(kw_only=True)
class NewTaskOptions:
    """Write a Python file with a new task into the current folder.

    The new task trains as it is: an arm with two joints reaches for goals. Edit the file to make it
    your own task.
    """

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")]
    """Name of the task, such as My-Robot-Reach, which makes the file my_robot_reach.py."""


def main(argv: list[str]) -> int:
    """Run `manyworlds new-task`."""
    name = parse(NewTaskOptions, argv, "new-task").name
    path = write_task(name, Path())
    print(f"{path}: edit it, and try it with")
    for command in ("validate", "train", "play"):
        print(f"  manyworlds {command} {name} --load {path}")
    return 0


def write_task(name: str, folder: Path) -> Path:
    """Write a module that registers a task.

    Args:
        name: the task's name: words of letters and digits, joined by hyphens.
        folder: folder of the new file.

    Returns:
        The path of the new file.

    Raises:
        ValueError: the name does not have that form, or is the name of a task.
        FileExistsError: the file exists.
    """
    from manyworlds.tasks import list_tasks

    if not _NAME.fullmatch(name):
        raise ValueError(
            f"'{name}' is no name for a task: use letters and digits, begin with a letter, and "
            "join words by hyphens, as in My-Robot-Reach."
        )
    if name in list_tasks():
        raise ValueError(f"There is a task '{name}' already: choose another name.")
    stem = name.replace("-", "_").lower()
    path = folder / f"{stem}.py"
    if path.exists():
        raise FileExistsError(f"'{path}' is there already: choose another name, or move it away.")
    write_atomic(path, _source(name, stem))
    return path


def _source(name: str, stem: str) -> str:
    spec = importlib.util.find_spec(_TEMPLATE)
    assert spec is not None and spec.origin is not None
    source = Path(spec.origin).read_text(encoding="utf-8").partition("\n")[2]
    for old, new in (
        ('experiment_name="reach"', f'experiment_name="{stem}"'),
        (_BEFORE, f"{_BEFORE}from manyworlds.tasks import register_task\n"),
    ):
        assert old in source, f"{_TEMPLATE} has no line {old!r} any more"
        source = source.replace(old, new)
    return f'''"""The task {name}: an arm of two joints reaches goals in a plane."""
{source}

register_task("{name}", env_cfg(), env_cfg(play=True), rl_cfg())
'''
