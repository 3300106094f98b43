"""Errors of verbs."""

from __future__ import annotations


class VerbError(ValueError):
    """Error of a verb.

    Args:
        code: kind of the error, for programs.
        message: one sentence.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
