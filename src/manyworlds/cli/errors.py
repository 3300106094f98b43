"""Errors that commands report in one line."""

from __future__ import annotations

from manyworlds.utils.extras import MissingExtraError

EXPECTED = (ValueError, KeyError, OSError, RuntimeError, MissingExtraError)
"""Errors that the input or the machine can cause; others are defects and keep their traceback."""


def one_line(error: BaseException) -> str:
    """Return the message of an error as one line of text."""
    if isinstance(error, OSError) and error.strerror:
        where = f": '{error.filename}'" if error.filename is not None else ""
        return f"{error.strerror}{where}"
    # str() of a KeyError is the repr of its message.
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    text = " ".join([*text.split(), *getattr(error, "__notes__", ())])
    # A bare name or nothing at all says too little without the kind of error.
    return text if " " in text else f"{type(error).__name__}: {text}".rstrip(": ")
