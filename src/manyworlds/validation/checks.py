"""Checks of arguments, each of which raises one sentence with the value and the bound."""

from __future__ import annotations

from numbers import Integral
from typing import Any


def check_type(name: str, value: Any, wanted: type, remedy: str) -> None:
    """Refuse an argument of another type; None stands for an argument that was not given.

    Raises:
        TypeError: names the argument, its type and the type wanted.
    """
    if value is not None and not isinstance(value, wanted):
        raise TypeError(
            f"{name} must be of type {wanted.__name__}, got {type(value).__name__}: {remedy}"
        )


def check_tuple(name: str, values: Any, wanted: type) -> None:
    """Refuse what is no tuple or list of objects of a type.

    Raises:
        TypeError: names the argument, what it is, and how to write it.
    """
    if not isinstance(values, tuple | list):
        raise TypeError(
            f"{name} must be a tuple of {wanted.__name__}, got {type(values).__name__}: write "
            "(value,), with a comma."
        )
    for i, value in enumerate(values):
        check_type(f"{name}[{i}]", value, wanted, "put only these there.")


def check_count(name: str, value: Any, least: int, remedy: str = "") -> None:
    """Refuse what is no whole number of at least `least`.

    Raises:
        ValueError: names the count, its value and the bound.
    """
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ValueError(f"{name} must be a whole number, got {value!r}{remedy}.")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}{remedy}.")


def choose(option: str, value: str, choices: dict[str, Any]) -> int:
    """Look a name up among those that MuJoCo knows.

    Raises:
        ValueError: it is none of them.
    """
    if value not in choices:
        raise ValueError(f"{option} must be one of {', '.join(choices)}, got '{value}'.")
    return int(choices[value])
