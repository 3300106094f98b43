"""Errors and warnings that commands report in one line."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from types import FunctionType, ModuleType

from manyworlds.utils.extras import MissingExtraError
from manyworlds.validation.names import near_matches


class UsageError(ValueError):
    """A command line that is wrong: exit code 2."""


EXPECTED = (ValueError, KeyError, OSError, RuntimeError, MissingExtraError)
"""Errors that the input or the machine can cause; others are defects and keep their traceback."""

_PACKAGE = Path(__file__).parents[1]


@contextlib.contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """Print warnings of this package without the line of its source; others as Python does."""
    default = warnings.formatwarning

    def format_one(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        line: str | None = None,
    ) -> str:
        if _PACKAGE in Path(filename).parents:
            return f"warning: {' '.join(str(message).split())}\n"
        return default(message, category, filename, lineno, line)

    warnings.formatwarning = format_one
    try:
        yield
    finally:
        warnings.formatwarning = default


def near_files(path: Path) -> str:
    """Return ' Did you mean ...?' for the misspelled path of a file, or an empty string."""
    folder = path.parent
    if not folder.is_dir():
        return f" The folder '{folder}' does not exist either."
    return near_matches(path.name, (entry.name for entry in islice(folder.iterdir(), 5000)))


def one_line(error: BaseException) -> str:
    """Return the message of an error as one line of text."""
    if isinstance(error, OSError) and error.strerror:
        if error.filename is None:
            return error.strerror
        return f"{error.strerror}: '{error.filename}'"
    text = str(error)
    if isinstance(error, KeyError) and error.args:
        text = str(error.args[0])  # str() of a KeyError is the repr of its message
    text = " ".join([*text.split(), *getattr(error, "__notes__", ())])
    if " " in text:
        return text
    # A bare name or nothing at all says too little without the kind of error.
    return f"{type(error).__name__}: {text}".rstrip(": ")


def with_place(message: str, error: BaseException) -> str:
    """Return a message with file and line of the user's code in which the error was raised.

    A message for an error that was raised elsewhere stays as it is.
    """
    place = ""
    step = error.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if not Path(file).is_relative_to(_PACKAGE) and _uses_package(step.tb_frame.f_globals):
            place = f"{file}, line {step.tb_lineno}"
        step = step.tb_next
    if not place:
        return message
    if place not in message:
        message = f"{message} ({place})"
    return f"{message} Run it with --debug for the whole traceback."


def _uses_package(names: Mapping[str, object]) -> bool:
    """Return whether a module that has these names has imported something of this package."""
    own = _PACKAGE.name
    for value in list(names.values()):
        if isinstance(value, ModuleType):
            module = value.__name__
        elif isinstance(value, type | FunctionType):
            module = value.__module__ or ""
        else:
            continue
        if module.partition(".")[0] == own:
            return True
    return False
