"""The parsing of command lines with tyro, and the tasks and modules that they name."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import tyro

from manyworlds.cli.deferred_import import defer_import
from manyworlds.cli.errors import UsageError, near_files
from manyworlds.cli.help_texts import join_source_lines
from manyworlds.utils.parse_errors import parse_errors_as_sentences

join_source_lines()

T = TypeVar("T")

Modules = tyro.conf.UseAppendAction[tuple[str, ...]]
"""The type of the option `--load`, which may be given several times."""
Host = Annotated[
    str,
    tyro.conf.arg(
        help="Address of the page; the default accepts connections from this machine only. Others "
        "need the token that the printed address has."
    ),
]
"""The type of the option `--host` of all commands that serve a page."""
Port = Annotated[
    int,
    tyro.conf.arg(help="Port of the page; the next free port is taken if this one is in use."),
]
"""The type of the option `--port` of all commands that serve a page."""
WebOrigins = Annotated[
    tyro.conf.UseAppendAction[tuple[str, ...]],
    tyro.conf.arg(
        help="Origin, such as https://hub.example.org, of a proxy or a notebook that shows the "
        "page; may be given several times. Pages of other web sites are refused."
    ),
]
"""The type of the option `--web-origin` of all commands that serve a page."""
NumEnvs = Annotated[
    int | None,
    tyro.conf.arg(
        help="Number of worlds, as --env.scene.num-envs; None takes the number of the task."
    ),
]
"""The type of the option `--num-envs` of all commands that build the environment of a task."""


class Frontend(NamedTuple):
    """Program that runs the commands with the arguments of its process, in a form of its own."""

    rewrite: Callable[[Any, list[str]], list[str]]
    """Rewrites arguments before they are parsed. It takes the dataclass of the options, or an
    instance with their defaults, and the arguments."""
    program: Callable[[], list[str]]
    """Returns the arguments of Python that start the program again, as it was started."""


FRONTENDS: list[Frontend] = []
"""Program that runs the present command, if it is not this package's own."""


@dataclass(kw_only=True)
class TaskOptions:
    """Start of the command line of a command that takes a task."""

    # Not `str | None`, to which tyro gives the text "[]" where an unknown option comes first.
    task: Annotated[
        tuple[str, ...],
        tyro.conf.Positional,
        tyro.conf.arg(metavar="TASK", help_behavior_hint=""),
    ] = ()
    """Name of the task."""
    robot: str = ""
    """Robot of Velocity-Flat and Velocity-Rough: quadruped, humanoid, go1, g1, or one with two or
    four legs of MuJoCo Menagerie. `manyworlds new-task --robot FILE` is for other models."""
    load: Modules = ()
    """Python file, or module, that registers tasks."""


def parse(options_type: type[T], argv: list[str], command: str) -> T:
    """Parse a whole command line.

    Raises:
        UsageError: the command line is wrong.
        SystemExit: tyro has printed the help.
    """
    args = rewritten(options_type, argv)
    with parse_errors_as_sentences(options_type):
        return tyro.cli(options_type, args=args, prog=f"manyworlds {command}")


def parse_known(
    options_type: type[T],
    argv: list[str],
    command: str,
    *,
    description: str | None = None,
    add_help: bool = False,
) -> tuple[T, list[str]]:
    """Parse the arguments that belong to options of a type, whose fields all have defaults.

    Args:
        options_type: a dataclass.
        argv: the arguments of the command.
        command: the command's name.
        description: first part of the help; None for the docstring of the type.
        add_help: whether `--help` prints the help of the type; else it is like other arguments.

    Returns:
        The options, and the arguments that belong to none of them.

    Raises:
        UsageError: the command line is wrong.
        SystemExit: tyro has printed the help.
    """
    args = rewritten(options_type, argv)
    with parse_errors_as_sentences(options_type):
        return tyro.cli(
            options_type,
            args=args,
            prog=f"manyworlds {command}",
            description=description,
            add_help=add_help,
            return_unknown_args=True,
        )


def parse_over(default: T, argv: list[str], command: str) -> T:
    """Parse a command line over the fields of a config, each of which is an option.

    Collections are written as in Python. Fields that text cannot express, such as functions, are
    no options.

    Raises:
        UsageError: the command line is wrong.
        SystemExit: tyro has printed the help.
    """
    args = rewritten(default, argv)
    gc.disable()  # the tree of options has many objects and no garbage
    try:
        with parse_errors_as_sentences(default):
            return tyro.cli(
                type(default),
                default=default,
                args=args,
                prog=f"manyworlds {command}",
                config=(
                    tyro.conf.AvoidSubcommands,
                    tyro.conf.HelptextFromCommentsOff,  # reading sources for comments is slow
                    tyro.conf.SuppressFixed,
                    tyro.conf.UsePythonSyntaxForLiteralCollections,
                ),
            )
    finally:
        gc.enable()


def rewritten(options: object, argv: list[str]) -> list[str]:
    """Return a command line with the options of this package in place of other spellings."""
    for frontend in FRONTENDS:
        argv = frontend.rewrite(options, argv)
    return argv


def parse_task(argv: list[str], command: str, summary: str) -> tuple[str, list[str]]:
    """Parse the task's name, after loading the modules that may register it.

    Args:
        argv: the arguments of the command.
        command: the command's name.
        summary: a sentence about the command, for its help.

    Returns:
        The name of a task that exists, and the other arguments.

    Raises:
        UsageError: no task is named, or the command line is wrong.
        KeyError: the task does not exist.
        SystemExit: tyro has printed the help without a task.
    """
    from manyworlds.tasks import list_tasks

    description = (
        f"{summary} `manyworlds {command} TASK --help` lists the options of a task, and "
        "`manyworlds list` the tasks."
    )
    options, rest = parse_known(TaskOptions, argv, command)
    if options.task:
        return find_task(options), rest
    parse_known(TaskOptions, argv, command, description=description, add_help=True)
    load_modules(options.load)
    raise UsageError(f"Name a task: manyworlds {command} TASK; tasks: {', '.join(list_tasks())}.")


def find_task(options: TaskOptions, log_root: Path = Path("runs")) -> str:
    """Return the name of a task that exists; torch and glfw load later, at their first use.

    Args:
        options: options that name the task.
        log_root: folder of all runs, which tell the files that registered their tasks.

    Raises:
        UsageError: several tasks are named, or a path.
        KeyError: the task does not exist.
    """
    from manyworlds.cli.runs import naming_load, newest_run
    from manyworlds.tasks.registry import require_task, task_of_robot

    task, *others = options.task
    if others:
        raise UsageError(f"Name one task, not {len(options.task)}: {' '.join(options.task)}.")

    # Only now: tyro's table of types, which the first parsing made, would use torch if it were
    # among the modules.
    defer_import("torch")
    defer_import("glfw")  # which MuJoCo imports for windows; it loads a library
    load_modules(options.load)
    if "/" in task or "\\" in task:
        raise UsageError(
            f"'{task}' is no task: name the task, and a run or a policy with --checkpoint."
        )
    if options.robot:
        return task_of_robot(task, options.robot)
    try:
        return require_task(task)
    except KeyError:
        with naming_load(newest_run(log_root, task)):
            raise


def load_modules(names: tuple[str, ...]) -> None:
    """Import modules by name, or by the path of a Python file.

    Raises:
        FileNotFoundError: a file does not exist.
        ValueError: a module does not exist, or importing a file fails.
    """
    for name in names:
        path = Path(name)
        if path.suffix == ".py":
            _load_file(path)
            continue
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise ValueError(
                f"Cannot load module '{name}': {error}. Install it, or name a .py file."
            ) from None


def _load_file(path: Path) -> None:
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no file '{path}' to load tasks from.{near_files(path)} Give --load the path "
            "of a Python file."
        )
    module_name = _module_name(path)
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[module_name]
        frames = [
            f
            for f in traceback.extract_tb(error.__traceback__)
            if Path(f.filename).resolve() == path.resolve()
        ]
        line = f", line {frames[-1].lineno}" if frames else ""
        raise ValueError(
            f"Cannot load tasks from '{path}'{line}: {type(error).__name__}: {error}"
        ) from error


def _module_name(path: Path) -> str:
    """Return the name by which `import` finds a file, or one of its own if that one is taken.

    Exported policies name functions by module, and programs import the file to provide them. But a
    file called random.py must not replace the standard module.
    """
    if path.stem.isidentifier():
        found = module_file(path.stem)
        if found is None or found.resolve() == path.resolve():
            return path.stem
    return f"manyworlds_loaded_{path.stem}"


def module_file(name: str) -> Path | None:
    """Return the file of the module that `import` finds by a name without dots.

    Returns:
        The file; for modules without one, such as `sys`, what Python says instead; None if there is
        no module, or only a folder without `__init__.py`.
    """
    if name in sys.modules:
        return Path(getattr(sys.modules[name], "__file__", None) or name)
    spec = importlib.util.find_spec(name)
    return None if spec is None or spec.origin is None else Path(spec.origin)
