"""Module with public names that lack docstrings, for `tests/test_docs.py`."""

from dataclasses import dataclass

__all__ = ["BARE", "EXPLAINED", "Cfg", "Thing", "function"]

BARE = 1

EXPLAINED = 2
"""A number."""


@dataclass
class Cfg:
    value: int = 0


class Thing:
    """Has a method."""

    def method(self) -> None:
        pass


def function() -> None:  # noqa: D103
    pass
