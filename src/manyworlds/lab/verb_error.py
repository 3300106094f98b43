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


class LabEndedError(VerbError):
    """Error of a verb of a lab in another process that has ended."""

    def __init__(self) -> None:
        super().__init__("not_ready", "The lab has ended: start it again.")
