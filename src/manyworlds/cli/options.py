"""Options that several commands have, and the parsing of command lines with tyro."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import tyro
from tyro.conf import arg

from manyworlds.cli.errors import UsageError
from manyworlds.cli.task_files import load_modules
from manyworlds.cli.value_forms import VALUE_FORMS

T = TypeVar("T")
TaskOptionsT = TypeVar("TaskOptionsT", bound="TaskOptions")

_NUMBERS = re.compile(r"[-+.,\d()\[\]e]*\d[-+.,\d()\[\]e]*")

RUNS = Path("runs")
"""Folder of all runs, unless a command line names another one."""

# The kinds of options that several commands have, each with its help.
LogRoot = Annotated[Path, arg(help="Folder of all runs.")]
Device = Annotated[
    str | None,
    arg(help="Torch device, such as cpu or cuda:0; None uses CUDA if available, else the CPU."),
]
Load = Annotated[
    tyro.conf.UseAppendAction[tuple[str, ...]],
    arg(
        help="Python file or module that registers tasks; recorded in the run folder, so that "
        "later commands for the run do not need it."
    ),
]
FromFile = Annotated[
    bool,
    arg(
        help="Use the task's settings and file as they are now, not those that the run was trained "
        "with."
    ),
]
WandbRunPath = Annotated[
    str | None,
    arg(help="Weights & Biases run whose checkpoint is downloaded: entity/project/run id."),
]
WandbCheckpointName = Annotated[
    str | None,
    arg(help="Name of the checkpoint in that run, such as model_100.pt; None uses the last."),
]
RunningTraining = Annotated[
    str,
    tyro.conf.Positional,
    arg(
        metavar="[RUN]",
        help="Run folder, or the name of a run in the folder of all runs; empty for the newest "
        "running training.",
    ),
]
Command = Annotated[
    dict[str, tuple[float, ...]],
    tyro.conf.UsePythonSyntaxForLiteralCollections,
    arg(help="Values of the policy's command terms, such as \"{'twist': (0.5, 0.0, 0.0)}\"."),
]
Bucket = Annotated[
    str | None,
    arg(
        help="Bucket of a task whose worlds have different robots or objects; None takes the "
        "first, or all where each is evaluated."
    ),
]
MissingMeshes = Annotated[
    Literal["error", "skip"],
    arg(
        help="What a missing mesh file of a model is: an error, or a warning and a geom without "
        "a shape."
    ),
]
Host = Annotated[
    str,
    arg(
        help="Address on which the page is served; the default accepts local connections only. "
        "Other machines need the token in the printed address."
    ),
]
Port = Annotated[
    int, arg(help="Port of the page; the next free port is taken if this one is in use.")
]
WebOrigins = Annotated[
    tyro.conf.UseAppendAction[tuple[str, ...]],
    arg(
        help="Origin of a proxy or a notebook that embeds the page, such as "
        "https://hub.example.org. Requests from other web sites are refused."
    ),
]


@dataclass(kw_only=True)
class TaskOptions:
    """Options of the commands that build the environment of a task."""

    # Not `str | None`, to which tyro gives the text "[]" where an unknown option comes first.
    task: Annotated[
        tuple[str, ...], tyro.conf.Positional, arg(metavar="TASK", help_behavior_hint="")
    ] = ()
    """Name of the task."""
    robot: Annotated[
        str,
        arg(
            help="Robot of Velocity-Flat and Velocity-Rough: quadruped, humanoid, go1, g1, or one "
            "with two or four legs of MuJoCo Menagerie. `manyworlds new-task --robot FILE` is for "
            "other models."
        ),
    ] = ""
    load: Load = ()
    log_root: LogRoot = RUNS
    checkpoint: Path | None = None
    device: Device = None
    num_envs: int | None = None
    """Number of worlds, as --env.scene.num-envs; None uses the task's number."""


@dataclass(kw_only=True)
class PolicyOptions(TaskOptions):
    """Options of the commands that run a trained policy."""

    task: Annotated[
        tuple[str, ...], tyro.conf.Positional, arg(metavar="[TASK]", help_behavior_hint="")
    ] = ()
    """Name of the task, or the path of a run folder or of a checkpoint."""
    checkpoint: Path | None = None
    """Checkpoint: a file, a run folder, or the name of a run; None uses the newest."""
    bucket: Bucket = None
    from_file: FromFile = False


class Frontend(NamedTuple):
    """Program that runs the commands with the arguments of its process, in a form of its own."""

    rewrite: Callable[[object, Sequence[str]], list[str]]
    """Rewrites arguments before they are parsed. It takes the dataclass of the options, or an
    instance with their defaults, and the arguments."""
    program: Callable[[], list[str]]
    """Returns the arguments of Python that start the program again, as it was started."""


FRONTENDS: list[Frontend] = []
"""Program that runs the present command, if it is not this package's own."""


def rewritten(options: object, argv: Sequence[str]) -> list[str]:
    """Return a command line with the options of this package in place of other spellings."""
    args = list(argv)
    for frontend in FRONTENDS:
        args = frontend.rewrite(options, args)
    return args


def parse(options_type: type[T], argv: Sequence[str], command: str) -> T:
    """Parse the whole command line of a command, and import what `--load` names.

    Raises:
        SystemExit: tyro has printed the help, or what is wrong.
        UsageError: there is a value too many.
        FileNotFoundError, ValueError: see `load_modules`.
    """
    options = parse_whole(options_type, rewritten(options_type, argv), command)
    load_modules(vars(options).get("load", ()))
    return options


def parse_whole(
    options_type: type[T], args: Sequence[str], command: str, default: Any = tyro.MISSING_NONPROP
) -> T:
    """Call `tyro.cli` for a whole command line.

    Raises:
        SystemExit: tyro has printed the help, or what is wrong.
        UsageError: no option, only a value, is unknown.
    """
    prog = f"manyworlds {command}"
    with warnings.catch_warnings():
        # A default of another type has an error of its own, that of what takes it.
        warnings.filterwarnings("ignore", "The field .* is annotated with type", UserWarning)
        options, unknown = tyro.cli(
            options_type,
            args=args,
            prog=prog,
            default=default,
            return_unknown_args=True,
            registry=VALUE_FORMS,
        )
    if not unknown:
        return options
    if any(word.startswith("-") for word in unknown):
        # Prints the options that are like these, and exits.
        return tyro.cli(options_type, args=args, prog=prog, default=default, registry=VALUE_FORMS)
    value = unknown[0]
    remedy = ""
    if _NUMBERS.fullmatch(value):
        remedy = '; write several values of one option as in "(64, 64)"'
        if hasattr(options, "seeds"):
            remedy += " and seeds as in 1,2,3"
    raise UsageError(f"The argument '{value}' is one too many{remedy}: see `{prog} --help`.")


def parse_known(options_type: type[T], argv: Sequence[str], command: str) -> tuple[T, list[str]]:
    """Parse the options of a type whose fields all have defaults.

    Returns:
        The options, and the other arguments, such as `--help` and fields of a task.

    Raises:
        SystemExit: tyro has printed what is wrong.
    """
    return tyro.cli(
        options_type,
        args=rewritten(options_type, argv),
        prog=f"manyworlds {command}",
        add_help=False,
        return_unknown_args=True,
        registry=VALUE_FORMS,
    )


def parse_task_command(
    options_type: type[TaskOptionsT], argv: Sequence[str], command: str
) -> tuple[TaskOptionsT, list[str]]:
    """Parse the options of a command that takes a task, and import what `--load` names.

    Returns:
        The options, and the other arguments, for `parse_fields`.

    Raises:
        SystemExit: tyro has printed the help, or what is wrong.
        FileNotFoundError, ValueError: see `load_modules`.
    """
    options, words = parse_known(options_type, argv, command)
    if not options.task and {"-h", "--help"} & {*words}:
        parse(options_type, ["--help"], command)
    load_modules(options.load)
    return options, words
