"""Metaclass of facades that extend a class of this project or of a library."""

from __future__ import annotations

from abc import ABCMeta


class Extended(ABCMeta):
    """Lets instances of the class in the attribute `extended` count as instances of the facade.

    The environment's own objects are instances of that class, and programs compare them with the
    name that they imported. Subclasses of the facade behave as usual.
    """

    def __instancecheck__(cls, instance: object) -> bool:
        if (extended := vars(cls).get("extended")) is not None:
            return isinstance(instance, extended)
        return super().__instancecheck__(instance)
