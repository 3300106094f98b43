"""Objects that several places of configurations share, so that an edit of one changes others."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any


def shared_parts(*configs: Any) -> list[tuple[str, str]]:
    """List pairs of paths to the same object that can be edited, in one or several configs."""
    first: dict[int, str] = {}
    shared = []
    for i, config in enumerate(configs):
        for path, part in _parts(config, f"[{i}]"):
            if id(part) in first:
                shared.append((first[id(part)], path))
            first.setdefault(id(part), path)
    return shared


def _parts(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        children = [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value)]
    elif isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list | tuple):
        children = list(enumerate(value))
    else:
        return
    if not isinstance(value, tuple):
        yield path, value
    for name, child in children:
        yield from _parts(child, f"{path}.{name}")
