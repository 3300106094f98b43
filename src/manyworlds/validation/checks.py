"""Checks of arguments; each error message has the value and the bound."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import SupportsInt


def check_type(name: str, value: object, wanted: type, remedy: str) -> None:
    """Check the type of an argument; None counts as an argument that was not given.

    Raises:
        TypeError: the type is wrong; the message has the argument and both types.
    """
    if value is not None and not isinstance(value, wanted):
        raise TypeError(
            f"{name} must be of type {wanted.__name__}, got {type(value).__name__}: {remedy}"
        )


def check_tuple(name: str, values: object, wanted: type) -> None:
    """Check that a value is a tuple or list of objects of a type.

    Raises:
        TypeError: it is not; the message has the argument, its type and the correct form.
    """
    if not isinstance(values, tuple | list):
        raise TypeError(
            f"{name} must be a tuple of {wanted.__name__}, got {type(values).__name__}: write "
            "(value,), with a comma."
        )
    for i, value in enumerate(values):
        check_type(f"{name}[{i}]", value, wanted, "all elements must be of this type.")


def check_count(name: str, value: object, least: int, remedy: str = "") -> None:
    """Check that a value is an integer of at least `least`.

    Raises:
        ValueError: it is not; the message has the name, the value and the bound.
    """
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ValueError(f"{name} must be a whole number, got {value!r}{remedy}.")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}{remedy}.")


def choose(option: str, value: str, choices: Mapping[str, SupportsInt]) -> int:
    """Return the value of a choice by its name.

    Raises:
        ValueError: there is no choice of this name.
    """
    if value not in choices:
        raise ValueError(f"{option} must be one of {', '.join(choices)}, got '{value}'.")
    return int(choices[value])
