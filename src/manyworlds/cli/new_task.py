"""`manyworlds new-task`: write a file with a task of one's own, ready to train."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from manyworlds.cli.common import UsageError
from manyworlds.utils.files import write_atomic

_TEMPLATE = "manyworlds.tasks.reach.reach_env_cfg"
_BEFORE = "from manyworlds.sim import MujocoCfg, SimulationCfg\n"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(-[A-Za-z0-9]+)*")
_USAGE = """usage: manyworlds new-task NAME

Write a task called NAME, such as My-Robot-Reach, into a file of that name here (my_robot_reach.py).
It trains as it stands: an arm of two joints reaches for goals. Change all of it."""


def main(argv: list[str]) -> int:
    """Write the file and say how to go on."""
    if any(arg in ("-h", "--help") for arg in argv):
        print(_USAGE)
        return 0
    if len(argv) != 1:
        raise UsageError(f"Give one name, as in `manyworlds new-task My-Task`, not {len(argv)}.")
    path = write_task(argv[0], Path())
    print(f"{path}: change it, and try it with")
    for command in ("validate", "train", "play"):
        print(f"  manyworlds {command} {argv[0]} --load {path}")
    return 0


def write_task(name: str, folder: Path) -> Path:
    """Write a module that registers a task.

    Args:
        name: the task's name: words of letters and digits, joined by hyphens.
        folder: where to.

    Returns:
        The new file.

    Raises:
        ValueError: the name is not of that form, or a task has it already.
        FileExistsError: the file is there already.
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
