"""Entry point of the `manyworlds` program, which imports only the command that it runs."""

from __future__ import annotations

import importlib
import os
import sys

from manyworlds.cli.errors import EXPECTED, UsageError, one_line, warnings_in_one_line
from manyworlds.utils.openmp import limit_openmp_spinning
from manyworlds.utils.platforms import show_all_characters

COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("manyworlds.cli.demo", "train a policy that pushes objects, evaluate it and show it"),
    "train": ("manyworlds.cli.train", "train a policy for a task"),
    "evaluate": ("manyworlds.cli.evaluate", "evaluate a policy by the rewards of its task"),
    "report": ("manyworlds.cli.report", "write a page about a training run"),
    "compare": ("manyworlds.cli.compare", "draw the curves of several runs in one picture"),
    "play": ("manyworlds.cli.play", "watch a trained policy"),
    "lab": ("manyworlds.cli.lab", "run one world live: view, perturb and control it"),
    "edit": ("manyworlds.cli.edit", "edit a running training, or list its edits"),
    "why": ("manyworlds.cli.why", "explain why episodes of a running training ended"),
    "peek": ("manyworlds.cli.peek", "view a world of another program in MuJoCo's window"),
    "ros2": ("manyworlds.cli.ros2", "publish a live world as ROS 2 messages"),
    "motion": ("manyworlds.cli.motion", "write motions for tracking tasks"),
    "terrain": ("manyworlds.cli.terrain", "show a terrain"),
    "list": ("manyworlds.cli.list", "list the tasks"),
    "new-task": ("manyworlds.cli.new_task", "write a Python file with a new task"),
    "bench": ("manyworlds.cli.bench", "measure the speed of a task or a model file"),
    "validate": ("manyworlds.cli.validate", "check model files and tasks"),
    "export": ("manyworlds.cli.export", "write a scene as one MJCF file with its assets"),
    "export-dataset": (
        "manyworlds.cli.export_dataset",
        "write episodes of a policy as Parquet files, as a LeRobot dataset",
    ),
    "diff": ("manyworlds.cli.diff", "compare two model files"),
    "doctor": ("manyworlds.cli.doctor", "check packages, OpenGL, GPU, ports and disk"),
    "replay-dump": ("manyworlds.cli.replay_dump", "replay a dump of the NaN guard in MuJoCo C"),
}
"""Commands by name: the module with `main(argv) -> int`, and one line of help."""

_DEBUG = "--debug"  # for all commands

WELCOME = """Train robots in many different worlds at once; walk into any one of them.

Three things to try:

  manyworlds demo                     train a pusher in 4 minutes, and film it
  manyworlds lab quadruped-on-hills   push a robot, live in the browser
  manyworlds train Cartpole-Swingup   train a policy; then: manyworlds play

All commands: manyworlds --help. Something does not work: manyworlds doctor."""


def main(argv: list[str] | None = None) -> int:
    """Run the `manyworlds` command.

    Args:
        argv: the arguments after the program's name; None takes those of the process.

    Returns:
        The exit code: 0 if all went well, 1 for an error, 2 for wrong usage, 130 for Ctrl-C.
    """
    limit_openmp_spinning()
    show_all_characters()
    argv = sys.argv[1:] if argv is None else argv
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
    except Exception as error:
        # Ctrl-C while a C++ module is loaded raises an ImportError.
        if isinstance(error, ImportError) and isinstance(error.__cause__, KeyboardInterrupt):
            return 130
        debugs = _DEBUG in argv or os.environ.get("MANYWORLDS_DEBUG", "0") not in ("", "0")
        message = _message(error)
        if message is None or (debugs and not isinstance(error, UsageError)):
            raise
        print(f"error: {message}", file=sys.stderr)
        return error.exit_code if isinstance(error, UsageError) else 1


def _message(error: Exception) -> str | None:
    """Return one line about an error that the input or the machine can cause, or None."""
    from manyworlds.utils.gl import gl_import_problem

    problem = gl_import_problem(error)
    if problem:
        return problem
    return one_line(error) if isinstance(error, EXPECTED) else None


def _dispatch(argv: list[str]) -> int:
    if not argv:
        print(WELCOME)
        return 0
    if argv[0] in ("-h", "--help", "help"):
        print(_help())
        return 0
    name = argv[0]
    if name in ("-V", "--version", "version"):
        # Not `manyworlds.__version__`: PyPI's `manyworlds` may have replaced our `__init__.py`.
        from manyworlds.utils.extras import own_version

        print(f"manyworlds {own_version()}")
        return 0
    if name not in COMMANDS:
        print(f"error: {_unknown(name)}", file=sys.stderr)
        return 2
    command = importlib.import_module(COMMANDS[name][0])
    try:
        return command.main(argv[1:])
    except SystemExit as stop:  # tyro has printed the help or an error
        if stop.code is None or isinstance(stop.code, int):
            return stop.code or 0
        raise


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {text}" for name, (_, text) in COMMANDS.items()]
    return "\n".join(
        [
            "usage: manyworlds COMMAND [OPTIONS]",
            "",
            "Train robots in many different worlds at once; walk into any one of them.",
            "",
            "commands:",
            *lines,
            "",
            "`manyworlds COMMAND --help` shows a command's options, `manyworlds --version` the",
            "version. With --debug, or MANYWORLDS_DEBUG=1 in the environment, errors other than",
            "wrong usage show their traceback.",
        ]
    )


def _unknown(name: str) -> str:
    from manyworlds.validation.names import near_names

    kind = "option" if name.startswith("-") else "command"
    known = ["--help", "--version"] if kind == "option" else list(COMMANDS)
    close = near_names(name, known, most=2)
    if close:
        return f"unknown {kind} '{name}': did you mean {' or '.join(map(repr, close))}?"
    return f"unknown {kind} '{name}': choose from {', '.join(known)}."


if __name__ == "__main__":
    sys.exit(main())
