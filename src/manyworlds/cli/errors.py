"""Errors and warnings that commands report in one line."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

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
