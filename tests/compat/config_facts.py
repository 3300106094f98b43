"""Comparison of configurations with facts about those of another framework.

A fact is JSON: a dataclass is a dictionary with its `__class__` and the fields that differ from
the class's defaults, a function is `fn:module.name`, a tuple is a list.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
from collections.abc import Iterator
from typing import Any

_FUNCTION = "fn:"
_DEFAULT = ".lambda"  # the default of a field, which has no name


def differences(fact: Any, ours: Any, path: str = "") -> Iterator[str]:
    """Yield `path: fact, value` for each value that is not as the fact says."""
    if isinstance(fact, dict) and "__class__" in fact:
        yield from _of_dataclass(fact, ours, path)
    elif isinstance(fact, dict) and isinstance(ours, dict):
        yield from _of_dict(fact, {str(key): value for key, value in ours.items()}, path)
    elif isinstance(fact, list) and isinstance(ours, list | tuple):
        if len(fact) != len(ours):
            yield f"{path}: {fact}, {ours}"
        for i, (expected, value) in enumerate(zip(fact, ours, strict=False)):
            yield from differences(expected, value, f"{path}[{i}]")
    elif isinstance(fact, str) and fact.startswith(_FUNCTION):
        if _function(fact.removeprefix(_FUNCTION)) is not ours:
            yield f"{path}: {fact}, {ours}"
    elif _plain(ours) != fact or isinstance(fact, bool) is not isinstance(ours, bool):
        yield f"{path}: {fact!r}, {ours!r}"


def _of_dict(fact: dict[str, Any], ours: dict[str, Any], path: str) -> Iterator[str]:
    ordered = all(dataclasses.is_dataclass(value) for value in ours.values())
    names, known = ([*ours], [*fact]) if ordered else (sorted(ours), sorted(fact))
    if names != known:
        yield f"{path}: {known}, {names}"
    for key in fact.keys() & ours.keys():
        yield from differences(fact[key], ours[key], f"{path}.{key}")


def _of_dataclass(fact: dict[str, Any], ours: Any, path: str) -> Iterator[str]:
    if not dataclasses.is_dataclass(ours) or type(ours).__name__ != fact["__class__"]:
        yield f"{path}: {fact['__class__']}, {type(ours).__name__}"
        return
    fields = {field.name: field for field in dataclasses.fields(ours)}
    if unknown := fact.keys() - fields.keys() - {"__class__"}:
        yield f"{path}: {sorted(unknown)}, no such fields"
    for name, field in fields.items():
        value, place = getattr(ours, name), f"{path}.{name}"
        expected = fact.get(name)
        if name not in fact or (isinstance(expected, str) and expected.endswith(_DEFAULT)):
            if value != (default := _default(field)):
                yield f"{place}: the default {default!r}, {value!r}"
        else:
            yield from differences(expected, value, place)


def _function(path: str) -> Any:
    """Import a function; several modules of theirs may be one package here."""
    module, _, name = path.rpartition(".")
    while module:
        try:
            return getattr(importlib.import_module(module), name)
        except ModuleNotFoundError:
            module = module.rpartition(".")[0]
    return None


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return str(value)
    return value.replace("manyworlds.", "mjlab.") if isinstance(value, str) else value
