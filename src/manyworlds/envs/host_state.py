"""What Python keeps of an environment besides the contents of tensors, and what changes it.

A graph repeats the kernels of a control step, but not the assignments of Python between them. Code
that runs between two graphs must find the attributes as they were at the capture.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import torch

from manyworlds.utils.state import Stateful
from manyworlds.validation.worlds import Worlds

_MISSING = object()
_ITEMS = "items of a list"


class Change(NamedTuple):
    """Attribute of an object, item of a dict, or all items of a list, with its new value."""

    container: Any
    key: object
    value: object
    before: object
    """Value before."""

    @property
    def is_first(self) -> bool:
        """True if there was no such attribute or item before."""
        return self.before is _MISSING

    @property
    def now(self) -> object:
        """Present value."""
        return _items(self.container).get(self.key, _MISSING)

    def apply(self) -> None:
        """Assign the value again."""
        container = self.container
        if isinstance(container, list):
            container[:] = self.value  # type: ignore[call-overload]
            return
        items = container if isinstance(container, dict) else vars(container)
        if self.value is _MISSING:
            items.pop(self.key, None)
        else:
            items[self.key] = self.value


class HostState:
    """Attributes and items of an object of the package and of all such objects within it, now.

    Args:
        root: the object.
        without: names of attributes of the root that are left out.
        opaque: types of objects whose parts are not looked at.
    """

    def __init__(
        self, root: object, without: Collection[str] = (), opaque: tuple[type, ...] = ()
    ) -> None:
        own: dict[object, Any] = {n: v for n, v in vars(root).items() if n not in without}
        self._containers: dict[int, object] = {id(root): root}  # kept, so that ids stay theirs
        self._items: dict[int, dict[object, object]] = {id(root): own}
        waiting = [*own.values()]
        while waiting:
            value = waiting.pop()
            seen = id(value) in self._containers
            if seen or isinstance(value, opaque) or not _is_walked(value):
                continue
            items = _items(value)
            self._containers[id(value)] = value
            self._items[id(value)] = items
            waiting += value if isinstance(value, list) else items.values()

    def changes_to(self, after: HostState) -> list[Change]:
        """Return what has been assigned between this state and another one."""
        changes: list[Change] = []
        for key, items in after._items.items():
            container = after._containers[key]
            before = self._items.get(key, {})
            for name, value in items.items():
                old = before.get(name, _MISSING)
                if not _is_same(old, value):
                    changes.append(Change(container, name, value, old))
            gone = before.keys() - items.keys()
            changes += [Change(container, name, _MISSING, before[name]) for name in gone]
        return changes


def fixed_copy(value: object, device: torch.device) -> object:
    """Return a copy whose tensors are memory of their own; numbers become tensors of shape []."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, int | float):
        return torch.tensor(value, device=device)
    if isinstance(value, Mapping):
        return {key: fixed_copy(item, device) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(fixed_copy(item, device) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        copied = copy.copy(value)
        for name, item in vars(value).items():
            if isinstance(item, torch.Tensor):
                vars(copied)[name] = item.clone()
        return copied
    if isinstance(value, Worlds) and value.is_masked:
        return Worlds.masked(value.mask.clone())
    return value


def tensors_of(value: object) -> Iterator[torch.Tensor]:
    """Yield the tensors of which `fixed_copy` makes copies, in a fixed order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors_of(item)
    elif isinstance(value, tuple):
        for item in value:
            yield from tensors_of(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from (item for item in vars(value).values() if isinstance(item, torch.Tensor))
    elif isinstance(value, Worlds) and value.is_masked:
        yield value.mask


def fits(value: object, other: object) -> bool:
    """Return whether two values have tensors of the same shapes and types."""
    one = [(tensor.shape, tensor.dtype) for tensor in tensors_of(value)]
    return one == [(tensor.shape, tensor.dtype) for tensor in tensors_of(other)]


def _items(container: Any) -> dict[object, object]:
    """Return a shallow copy of what a container holds."""
    if isinstance(container, dict):
        return dict(container)
    if isinstance(container, list):
        return {_ITEMS: list(container)}
    return dict(vars(container))


def _is_walked(value: object) -> bool:
    """Return whether a value is a container whose parts are looked at."""
    if isinstance(value, dict | list):
        return True
    if isinstance(value, torch.Tensor | type) or not hasattr(value, "__dict__"):
        return False
    return isinstance(value, Stateful) or type(value).__module__.startswith("manyworlds.")


def _is_same(old: object, new: object) -> bool:
    """Return whether nothing was assigned, as far as one can see."""
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(a is b for a, b in zip(old, new, strict=True))
    if isinstance(old, int | float | str) and type(old) is type(new):
        return old == new
    return old is new
