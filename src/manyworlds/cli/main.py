"""Entry point of the `manyworlds` program, which imports only the command that it runs."""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType

from manyworlds.cli.errors import (
    EXPECTED,
    UsageError,
    one_line,
    warnings_in_one_line,
    with_place,
)
from manyworlds.utils.openmp import limit_openmp_spinning
from manyworlds.utils.platforms import show_all_characters

COMMANDS = {
    "demo": "train a policy that pushes objects, evaluate it and show it",
    "train": "train a policy for a task",
    "evaluate": "evaluate a policy by the rewards of its task",
    "report": "write a page about a training run",
    "compare": "draw the curves of several runs in one picture",
    "play": "watch a trained policy",
    "lab": "run one world live: view, perturb and control it",
    "edit": "edit a running training, or list its edits",
    "why": "explain why episodes of a running training ended",
    "peek": "view a world of another program in MuJoCo's window",
    "ros2": "publish a live world as ROS 2 messages",
    "motion": "write motions for tracking tasks",
    "terrain": "show a terrain",
    "list": "list the tasks",
    "new-task": "write a Python file with a new task",
    "bench": "measure the speed of a task or a model file",
    "validate": "check model files and tasks",
    "export": "write a scene as one MJCF file with its assets",
    "share": "write a page that runs a policy in any browser, without a server",
    "export-dataset": "write episodes of a policy as Parquet files, as a LeRobot dataset",
    "diff": "compare two model files",
    "doctor": "check packages, OpenGL, GPU, ports and disk",
    "replay-dump": "replay a dump of the NaN guard in MuJoCo C",
}
"""Help of each command. A command is a module of its name with `main(argv) -> int`."""

_DEBUG = "--debug"  # for all commands

WELCOME = """Train robots in many different worlds at once; walk into any one of them.

Three things to try:

  manyworlds demo                     train and film a pusher in under 4 minutes
  manyworlds lab quadruped-on-hills   push a robot, live in the browser
  manyworlds train Cartpole-Swingup   train a policy; then: manyworlds play

All commands: manyworlds --help. Something does not work: manyworlds doctor."""

HELP = """usage: manyworlds COMMAND [OPTIONS]

Train robots in many different worlds at once; walk into any one of them.

commands:
{commands}

`manyworlds COMMAND --help` shows a command's options, `manyworlds --version` the
version. With --debug, or MANYWORLDS_DEBUG=1 in the environment, errors other than
wrong usage show their traceback."""


def main(argv: list[str] | None = None) -> int:
    """Run the `manyworlds` command.

    Args:
        argv: the arguments after the program's name; None takes those of the process.

    Returns:
        The exit code: 0 if all went well, 1 for an error, 2 for wrong usage, 130 for Ctrl-C.
    """
    limit_openmp_spinning()
    show_all_characters()
    if argv is None:
        argv = sys.argv[1:]
    try:
        with warnings_in_one_line():
            code = _dispatch([argument for argument in argv if argument != _DEBUG])
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader, such as `head`, has closed the pipe. Nothing may write to it at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except UsageError as error:
        print(f"error: {one_line(error)}", file=sys.stderr)
        return 2
    except Exception as error:
        # Ctrl-C while a C++ module is loaded raises an ImportError.
        if isinstance(error, ImportError) and isinstance(error.__cause__, KeyboardInterrupt):
            return 130
        from manyworlds.utils.gl import gl_import_problem

        message = gl_import_problem(error)
        is_of_a_term = hasattr(error, "__manyworlds_term__")  # which the error names
        if not message and (is_of_a_term or isinstance(error, EXPECTED)):
            message = with_place(one_line(error), error)
        debugs = _DEBUG in argv or os.environ.get("MANYWORLDS_DEBUG", "0") not in ("", "0")
        if not message or debugs:
            raise
        print(f"error: {message}", file=sys.stderr)
        return 1


def _dispatch(argv: list[str]) -> int:
    """Run the command that the first argument names."""
    if not argv:
        print(WELCOME)
        return 0
    name, *rest = argv
    if name in ("-h", "--help", "help"):
        width = max(map(len, COMMANDS))
        lines = [f"  {command:<{width}}  {text}" for command, text in COMMANDS.items()]
        print(HELP.format(commands="\n".join(lines)))
        return 0
    if name in ("-V", "--version", "version"):
        # Not `manyworlds.__version__`: PyPI's `manyworlds` may have replaced our `__init__.py`.
        from manyworlds.utils.extras import own_version

        print(f"manyworlds {own_version()}")
        return 0
    if name not in COMMANDS:
        from manyworlds.validation.names import near_matches

        kind = "command"
        known = list(COMMANDS)
        if name.startswith("-"):
            kind = "option"
            known = ["--help", "--version"]
        remedy = near_matches(name, known) or f" Choose from {', '.join(known)}."
        raise UsageError(f"There is no {kind} '{name}'.{remedy}")
    try:
        return load_command(name).main(rest)
    except SystemExit as stop:  # tyro has printed the help or an error
        if stop.code is None or isinstance(stop.code, int):
            return stop.code or 0
        raise


def load_command(name: str) -> ModuleType:
    """Import the module of a command."""
    return importlib.import_module(f"manyworlds.cli.{name.replace('-', '_')}")


if __name__ == "__main__":
    sys.exit(main())
