"""Attributes that a class declares and its instances assign."""

from __future__ import annotations

from typing import Any


class _Declared:
    """Descriptor that is only reached while an instance has no value of its own."""

    def __init__(self, until: str) -> None:
        self._until = until

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            return self
        raise AttributeError(
            f"'{owner.__name__}' object has no attribute '{self._name}' {self._until}"
        )


def declared(until: str = "before it is assigned.") -> Any:
    """Declare an attribute that instances assign, so that the class lists and documents it.

    Reading an assigned attribute is as fast as without a declaration.

    Args:
        until: end of the error's sentence "... has no attribute 'x' ..."; says when it has one.
    """
    return _Declared(until)
