"""Commands in programs written for mjlab: flags with values, and processes of their own."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import tyro

from manyworlds.cli.errors import UsageError

TYRO_FLAGS = (
    tyro.conf.AvoidSubcommands,
    tyro.conf.FlagConversionOff,
    tyro.conf.UsePythonSyntaxForLiteralCollections,
)
"""Markers for `tyro.cli(..., config=TYRO_FLAGS)`, with which flags take True or False."""

_VALUES = {"True": True, "False": False}
_ABSENT = {
    "--registry-name": (
        "motions are files: download it, and give --env.commands.motion.motion-file FILE to train, "
        "or --motion-file FILE to play"
    ),
    "--torchrunx-log-dir": "processes print to the terminal: leave it out",
}
"""Remedies for options that mjlab's commands have and these have not."""


class _Flag(NamedTuple):
    """A boolean field that is a flag on the command line."""

    option: str
    """The option that sets the field to True, such as `--agent.resume`."""
    default: bool
    has_negative: bool
    """True if an option `--agent.no-resume` sets the field to False."""

    def arguments(self, value: bool) -> list[str]:
        """Return the arguments that set the field to a value."""
        if not self.has_negative and value == self.default:
            return []
        if value:
            return [self.option]
        head, dot, name = self.option.removeprefix("--").rpartition(".")
        return [f"--{head}{dot}no-{name}"]


def plain_flags(options: object, argv: Sequence[str]) -> list[str]:
    """Write flags that have a value as flags without one: `--video True` as `--video`.

    Other options keep their values, also if that is True or False.

    Args:
        options: the dataclass of the options, or an instance with their defaults.
        argv: the arguments.

    Raises:
        UsageError: an option exists in mjlab alone.
    """
    result: list[str] = []
    rest = list(argv)
    while rest:
        argument = rest.pop(0)
        option, equals, value = argument.partition("=")
        remedy = _ABSENT.get(option.replace("_", "-"))
        if remedy is not None:
            raise UsageError(f"There is no option {option}, since {remedy}.")
        if not equals and rest and rest[0] in _VALUES:
            value = rest[0]
        flag = None
        if value in _VALUES:
            flag = _find_flag(options, option)
        if flag is None:
            result.append(argument)
            continue
        result += flag.arguments(_VALUES[value])
        if not equals:
            del rest[0]
    return result


def _find_flag(options: object, option: str) -> _Flag | None:
    """Find the field that an option such as `--env.sim.nan-guard.enabled` sets, if it is a flag."""
    if not option.startswith("--"):
        return None
    *parents, name = option.removeprefix("--").split(".")
    parent = options
    for part in parents:
        parent = _entries(parent).get(_plain(part))
    value = _entries(parent).get(_plain(name))
    if not isinstance(value, bool):
        return None
    if not dataclasses.is_dataclass(parent):
        return _Flag(option, value, has_negative=True)
    cls = parent
    if not isinstance(cls, type):
        cls = type(cls)
    hint = get_type_hints(cls, include_extras=True)[_plain(name)]
    markers = ()
    if get_origin(hint) is Annotated:
        hint, *markers = get_args(hint)
    if hint is not bool or tyro.conf.FlagConversionOff in markers:
        return None
    return _Flag(option, value, tyro.conf.FlagCreatePairsOff not in markers)


def _entries(parent: Any) -> dict[str, Any]:
    """Return the values below an option, by name."""
    if dataclasses.is_dataclass(parent):
        if isinstance(parent, type):
            return {f.name: f.default for f in dataclasses.fields(parent)}
        return {f.name: getattr(parent, f.name) for f in dataclasses.fields(parent)}
    if isinstance(parent, dict):
        return {_plain(str(key)): value for key, value in parent.items()}
    if isinstance(parent, list | tuple):
        return {str(i): value for i, value in enumerate(parent)}
    return {}


def _plain(name: str) -> str:
    """Return a name without the hyphens of command lines."""
    return name.replace("-", "_")


def present_program() -> list[str]:
    """Return the arguments of Python that start the present program again: `-m MODULE ...`, a file.

    Options of the interpreter itself are left out.

    Raises:
        ValueError: the program is no module and no file.
    """
    arguments = sys.orig_argv[1:]
    while arguments and arguments[0].startswith("-") and arguments[0] != "-m":
        if arguments[0] == "-c" or len(arguments) == 1:
            raise ValueError(
                "Training on several GPUs starts the program once for each: write the code of "
                "`python -c` to a file and run that."
            )
        option = arguments.pop(0)
        if option in ("-X", "-W"):
            del arguments[0]
    return arguments
