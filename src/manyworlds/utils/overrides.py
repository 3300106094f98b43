"""Detection of methods that a subclass overrides."""

from __future__ import annotations


def overrides(instance: object, base: type, *methods: str) -> bool:
    """Return whether the class of an object replaces any of these methods of a base class."""
    own = type(instance)
    return any(getattr(own, name) is not getattr(base, name) for name in methods)
