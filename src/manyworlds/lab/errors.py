"""Errors of verbs, and hints in them."""

from __future__ import annotations

from collections.abc import Iterable

from manyworlds.validation.names import near_names


class VerbError(ValueError):
    """Error of a verb.

    Args:
        code: kind of the error, for programs.
        message: one sentence.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class UnknownElementError(KeyError):
    """Error of a name that no element of the model has."""


class LabEndedError(VerbError):
    """Error of a verb of a lab in another process that has ended."""

    def __init__(self) -> None:
        super().__init__("not_ready", "The lab has ended: start it again.")


def near(value: object, known: Iterable[str], otherwise: str = ".") -> str:
    """Return the end of a sentence about a wrong name: the names that resemble it, if any do."""
    close = near_names(str(value), [name for name in known if name])
    if not close:
        return otherwise
    return f"; did you mean {' or '.join(repr(name) for name in close)}?"
