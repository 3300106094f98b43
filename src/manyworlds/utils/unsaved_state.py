"""State missing from checkpoints: attributes that change but are not in `state_dict`."""

from __future__ import annotations

import functools
import hashlib
import inspect
import types
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch

from manyworlds.utils.state import (
    PLAIN,
    Stateful,
    check_savable,
    generator_state,
    has_state,
)
from manyworlds.utils.world_random import RandomStream, WorldRandom

_NOTHING = b"None;"  # as None, which such a value may replace
_NONE = hashlib.blake2b(_NOTHING, digest_size=16).digest()


class UnsavedState:
    """Finds changing attributes that the checkpoints of an object and its parts omit.

    Attributes are compared with their values at construction. A change would be lost, unless
    `state_attributes` or `derived_attributes` lists the attribute, an overridden `state_dict`
    returns it, or its memory belongs to a saved attribute or to the engine.

    Args:
        root: the object that is saved.
        name: name of the object in messages.
        engine_memory: function that returns the tensors that the engine restores.
        others: objects to skip, such as the simulation.

    Raises:
        AttributeError: an object lacks an attribute in its `state_attributes`.
        TypeError: an attribute listed there cannot be saved.
    """

    def __init__(
        self,
        root: Stateful,
        name: str,
        engine_memory: Callable[[], Iterable[torch.Tensor]] = tuple,
        others: Iterable[object] = (),
    ) -> None:
        self._root = root
        self._name = name
        self._engine_memory = engine_memory
        self._others = (self, *others)
        self._warned: set[tuple[object, str]] = set()
        owners = self._owners()
        for owner, where in owners:
            if owner is not root:  # a subclass may not have completed it yet
                _check_names(owner, where)
        self._known = {id(owner): owner for owner, _ in owners}  # kept, so that ids are unique
        prints = self._printer(owners)
        self._prints = {
            (id(owner), name): prints(value)
            for owner, _ in owners
            for name, value in _unnamed(owner).items()
        }
        self._built = self._known.keys() - {id(root)}

    def warn(self) -> None:
        """Warn about changes that a checkpoint would omit now, once per attribute."""
        owners = self._owners()
        prints = self._printer(owners)
        for owner, where in owners:
            changed: dict[str, bytes] = {}
            for name, value in _unnamed(owner).items():
                now = prints(value)
                if now != self._before(owner, name, now):
                    changed[name] = now
            if changed and has_state(owner) and owner is not self._root:
                state = owner.state_dict()
                keys = {key.lstrip("_") for key in state}
                saved = prints.of_items(state)
                changed = {n: p for n, p in changed.items() if n.lstrip("_") not in keys}
                changed = {n: p for n, p in changed.items() if p not in saved}
            for name in changed:
                key = (_class_of(owner), name)
                if key not in self._warned:
                    self._warned.add(key)
                    warnings.warn(_message(owner, where, name), stacklevel=3)

    def accept(self, owner: object, name: str) -> None:
        """Take the present value of an attribute as its first one."""
        self._prints[(id(owner), name)] = self._printer(self._owners())(getattr(owner, name))

    def _before(self, owner: object, name: str, now: bytes) -> bytes:
        """Return the print of an attribute's first value, at construction or first checkpoint."""
        if id(owner) not in self._built:
            self._known[id(owner)] = owner
            return self._prints.setdefault((id(owner), name), now)
        return self._prints.get((id(owner), name), _NONE)

    def _owners(self) -> list[tuple[object, str]]:
        """Return the objects that the root saves, including itself, each with its path."""
        found: dict[int, tuple[object, str]] = {}

        def visit(value: object, where: str) -> None:
            if isinstance(value, dict):
                for key, item in value.items():
                    visit(item, f"{where}[{key!r}]")
            elif isinstance(value, list | tuple | deque):
                for i, item in enumerate(value):
                    visit(item, f"{where}[{i}]")
            elif isinstance(value, types.MethodType):
                visit(value.__self__, where)
            elif id(value) not in found and _may_hold_state(value):
                found[id(value)] = value, where
                if isinstance(value, Stateful):
                    for part, item in value.state_parts():
                        visit(item, where + part)

        visit(self._root, self._name)
        return [*found.values()]

    def _printer(self, owners: list[tuple[object, str]]) -> _Printer:
        saved = [
            getattr(owner, name, None)
            for owner, _ in owners
            for name in getattr(type(owner), "state_attributes", ())
        ]
        restored = [*self._engine_memory(), *_tensors(saved)]
        return _Printer(restored, [*self._others, *(owner for owner, _ in owners)])


class _Printer:
    """Computes a fingerprint of any value, which changes with the data in it.

    Args:
        restored: tensors whose memory is ignored.
        known: objects that are ignored.
    """

    def __init__(self, restored: Iterable[torch.Tensor], known: list[object]) -> None:
        storages = (tensor.untyped_storage() for tensor in restored)
        self._spans = {(s.data_ptr(), s.data_ptr() + s.nbytes()) for s in storages}
        self._known = {id(value) for value in known}

    def __call__(self, value: object) -> bytes:
        """Return the fingerprint of a value."""
        digest = hashlib.blake2b(digest_size=16)
        seen: dict[int, object] = {}  # kept alive, so that ids are unique
        rest = [value]
        while rest:
            value = rest.pop()
            if type(value) in PLAIN:
                digest.update(f"{value!r};".encode())
            elif id(value) in self._known or id(value) in seen:
                digest.update(_NOTHING)
            elif isinstance(value, torch.Tensor | np.ndarray | np.generic):
                self._add_array(digest.update, value)
            elif (parts := _parts(value)) is not None:
                seen[id(value)] = value
                digest.update(repr([key for key, _ in parts]).encode())
                rest += [item for _, item in parts]
            else:
                digest.update(_NOTHING)
        return digest.digest()

    def of_items(self, value: object) -> set[bytes]:
        """Return the fingerprints of all arrays and collections within a value."""
        if isinstance(value, torch.Tensor | np.ndarray | np.generic):
            return {self(value)}
        if not isinstance(value, dict | list | tuple) or not value:
            return set()
        found = {self(value)}
        if isinstance(value, dict):
            value = list(value.values())
        for item in value:
            found |= self.of_items(item)
        return found

    def _add_array(self, add: Callable[[bytes], None], value: Any) -> None:
        tensor = isinstance(value, torch.Tensor)
        if tensor and (value.layout is not torch.strided or value.is_meta or value.is_quantized):
            return add(_NOTHING)
        start = value.data_ptr() if tensor else value.__array_interface__["data"][0]
        if any(low <= start < high for low, high in self._spans):
            return add(_NOTHING)
        add(f"{str(value.dtype).removeprefix('torch.')}{(*value.shape,)}".encode())
        if tensor:
            value = value.detach().resolve_conj().resolve_neg().cpu()
            value = value.clone(memory_format=torch.contiguous_format)  # or it is expanded
            value = value.reshape(-1).view(torch.uint8).numpy()
        return add(value.tobytes())


def _parts(value: object) -> list[tuple[object, object]] | None:
    """Return the parts of a value; None if it has no accessible data."""
    if isinstance(value, dict):
        return [*value.items()]
    if isinstance(value, list | tuple | deque):
        return [*enumerate(value)]
    if isinstance(value, set | frozenset):
        return [("", item) for item in sorted(value, key=repr)]
    if isinstance(value, torch.nn.Module):
        return [*value.state_dict().items()]
    if isinstance(value, RandomStream | WorldRandom):
        return None  # the environment saves them
    if isinstance(value, type | types.ModuleType | types.FunctionType | types.MethodType):
        return None
    state = generator_state(value)
    if state is not None:
        return [("generator", state)]
    if not hasattr(value, "__dict__"):
        return None
    return list(vars(value).items())


def _tensors(value: object) -> Iterator[torch.Tensor]:
    """Yield the tensors within a value, except those of objects."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, list | tuple | deque):
        for item in value:
            yield from _tensors(item)


def _may_hold_state(value: object) -> bool:
    """Return whether an object may be a term, a part of one, or a part of the scene."""
    if isinstance(value, torch.nn.Module | type | types.BuiltinFunctionType):
        return False
    return has_state(value) or callable(value)


def _unnamed(owner: object) -> dict[str, object]:
    """Return the attributes of an object that are neither saved by name nor declared derived."""
    named = set(getattr(type(owner), "state_attributes", ()))
    for base in type(owner).__mro__:
        named.update(vars(base).get("derived_attributes", ()))
    return {name: value for name, value in _attributes(owner).items() if name not in named}


def _attributes(owner: object) -> dict[str, object]:
    """Return an object's attributes by name; of a function, its closure and defaults."""
    own = dict(getattr(owner, "__dict__", {}))
    if isinstance(owner, functools.partial):
        arguments = {f"args[{i}]": value for i, value in enumerate(owner.args)}
        return {**_attributes(owner.func), **arguments, **owner.keywords}
    if isinstance(owner, types.FunctionType):
        parameters = inspect.signature(owner).parameters.values()
        own |= {p.name: p.default for p in parameters if p.default is not p.empty}
        cells = zip(owner.__code__.co_freevars, owner.__closure__ or (), strict=True)
        own |= {name: cell.cell_contents for name, cell in cells if cell != types.CellType()}
    return own


def _check_names(owner: object, where: str) -> None:
    what = type(owner).__name__
    for name in getattr(type(owner), "state_attributes", ()):
        if not hasattr(owner, name):
            raise AttributeError(
                f"{what}.state_attributes names '{name}', which {where} does not have once it is "
                f"built: create it in __init__ (None is sufficient), or correct the name; it has "
                f"{', '.join(_attributes(owner)) or 'no attributes'}."
            )
        check_savable(getattr(owner, name), f"{what}.{name}")


def _class_of(owner: object) -> type | types.FunctionType:
    """Return an object's class; for a function, the function itself."""
    while isinstance(owner, functools.partial):
        owner = owner.func
    if isinstance(owner, types.FunctionType):
        return owner
    return type(owner)


def _message(owner: object, where: str, name: str) -> str:
    what = _class_of(owner).__name__
    remedy = f"derive it from Stateful (manyworlds.utils.state) and list '{name}' in"
    if isinstance(owner, Stateful):
        remedy = "list it in"
    elif isinstance(owner, types.FunctionType | functools.partial):
        remedy = "make it a class (ManagerTermBase) that lists it in"
    return (
        f"{what}.{name} of {where} changes, but is not in any checkpoint, so a resumed run does "
        f"not continue exactly: {remedy} state_attributes, or in derived_attributes if it is "
        "recomputed before it is read."
    )
