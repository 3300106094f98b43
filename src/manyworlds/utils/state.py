"""Saving and restoring of objects with state."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import random
from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeGuard

import numpy as np
import torch

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

PLAIN = frozenset((bool, int, float, complex, str, bytes, type(None)))
"""Types that are saved unchanged."""
_ARRAY = "__array__"


class WorldRows(NamedTuple):
    """Rows of some worlds of a saved tensor; see `state_of_one`."""

    rows: torch.Tensor
    axis: int
    """Dimension of the worlds."""

    def clone(self) -> WorldRows:
        """Return the rows, which are a copy already."""
        return self


class WorldFlags(NamedTuple):
    """List of worlds in a state of several; `state_of_one` returns [0] or [], as for one world."""

    flags: torch.Tensor
    """Mask of the saved worlds that are in the list, shape [n]."""


class _World(NamedTuple):
    """World, or several, whose part of a value is saved."""

    env_id: int | torch.Tensor
    num_envs: int
    axis: int | None
    """Dimension of the worlds in tensors; None if they are shared."""

    def row(self, tensor: torch.Tensor) -> torch.Tensor | WorldRows:
        """Return the row of the world, shape [1, ...] or [:, 1, ...]; a shared tensor as it is."""
        if self.axis is None or tensor.shape[self.axis : self.axis + 1] != (self.num_envs,):
            return tensor
        if isinstance(self.env_id, torch.Tensor):
            ids = self.env_id.to(tensor.device)
            return WorldRows(tensor.index_select(self.axis, ids), self.axis)
        return tensor.narrow(self.axis, self.env_id, 1)


class HasState(Protocol):
    """Object that saves its own state: a `Stateful`, a torch module, or one with these methods."""

    def state_dict(self) -> Mapping[str, object]:
        """Return a copy of the state."""
        ...

    def load_state_dict(self, state: dict[str, object], /) -> object:
        """Restore a state that `state_dict` returned."""
        ...


class Stateful:
    """Base class that declares the attributes of an object's state.

    An attribute may be a tensor, an array, a number, text, a random generator, a list, tuple,
    deque, set, dict or dataclass of these, or another object with a `state_dict` (or a dict or
    list of such objects).

    Saving an environment warns about attributes that change between steps and are in neither list;
    see `UnsavedState`.
    """

    state_attributes: ClassVar[tuple[str, ...]] = ()
    """Attributes that `state_dict` saves; a subclass repeats those of its base."""
    derived_attributes: ClassVar[tuple[str, ...]] = ()
    """Attributes that change but need no saving, because they are recomputed before they are read;
    those of base classes are included."""
    world_columns: ClassVar[tuple[str, ...]] = ()
    """Saved attributes whose tensors have the worlds in their second dimension, not in the first;
    those of base classes are included."""
    shared_attributes: ClassVar[tuple[str, ...]] = ()
    """Saved attributes that all worlds share, also if a dimension equals the number of worlds;
    those of base classes are included."""

    def saved_values(self) -> dict[str, object]:
        """Return the values that `state_dict` saves, by name; not copies.

        A subclass that saves more than `state_attributes` extends the result.
        """
        return {name: getattr(self, name) for name in self.state_attributes}

    def state_dict(self) -> dict[str, object]:
        """Return a copy of the state: tensors, plain data, and nested dicts and lists of them.

        Raises:
            TypeError: an attribute has a type that cannot be saved.
        """
        what = type(self).__name__
        return {n: _save(value, f"{what}.{n}") for n, value in self.saved_values().items()}

    def state_of_world(self, env_id: int | torch.Tensor, num_envs: int) -> dict[str, object]:
        """Return the part of the state that belongs to one world, and what all worlds share.

        `load_state_dict` of the same object for one world accepts it. Tensors have a row per world;
        `world_columns` and `shared_attributes` name the exceptions, and a tensor without as many
        rows as worlds is shared.

        Args:
            env_id: index of the world; or those of several, shape [n], whose rows are then
                `WorldRows`, for `state_of_one`.
            num_envs: number of worlds.
        """
        if type(self).state_dict is Stateful.state_dict:
            values = self.saved_values()
        else:
            values = self.state_dict()
        return self._rows_of(values, env_id, num_envs)

    def _rows_of(
        self, values: Mapping[str, object], env_id: int | torch.Tensor, num_envs: int
    ) -> dict[str, object]:
        what = type(self).__name__
        axes: dict[str, int | None] = {}
        for base in type(self).__mro__:
            axes.update(dict.fromkeys(vars(base).get("world_columns", ()), 1))
            axes.update(dict.fromkeys(vars(base).get("shared_attributes", ()), None))
        return {
            name: _save(value, f"{what}.{name}", _World(env_id, num_envs, axes.get(name, 0)))
            for name, value in values.items()
        }

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Restore a state that `state_dict` returned; tensors are written in place.

        Raises:
            ValueError: the saved state does not fit this object.
        """
        missing = set(self.state_attributes) - set(state)
        if missing:
            raise ValueError(
                f"The saved state of {type(self).__name__} lacks {sorted(missing)}: "
                "was it saved from another configuration?"
            )
        for name in self.state_attributes:
            setattr(self, name, _load(getattr(self, name), state[name], name))

    def state_parts(self) -> Iterator[tuple[str, object]]:
        """Yield the existing parts of the saved state, each with its path."""
        for name in self.state_attributes:
            yield f".{name}", getattr(self, name, None)


def state_of_one(saved: object, place: int) -> object:
    """Return the state of one of several worlds that were saved together; see `state_of_world`.

    Args:
        saved: the state, or a part of it.
        place: place of the world among those that were saved.
    """
    if isinstance(saved, WorldRows):
        return saved.rows.narrow(saved.axis, place, 1).clone()
    if isinstance(saved, WorldFlags):
        return saved.flags[place : place + 1].nonzero().flatten()
    if isinstance(saved, dict):
        return {key: state_of_one(item, place) for key, item in saved.items()}
    if isinstance(saved, list | tuple):
        return type(saved)(state_of_one(item, place) for item in saved)
    return saved


@contextlib.contextmanager
def changing_only(value: Stateful, worlds: torch.Tensor) -> Iterator[None]:
    """Let what happens within this context change the state of some worlds alone.

    For calls that compute all worlds although only some may change.

    Args:
        value: the object whose state is kept.
        worlds: mask of the worlds that may change, shape [num_envs].
    """
    num_envs = len(worlds)
    before = value.state_of_world(torch.arange(num_envs, device=worlds.device), num_envs)
    yield
    if before:
        value.load_state_dict(_merged(before, value.state_dict(), worlds))


def _merged(before: Any, after: Any, worlds: torch.Tensor) -> Any:
    """Return the state after a change, but that before it in all worlds except some."""
    if isinstance(before, WorldRows):
        shape = [1] * after.ndim
        shape[before.axis] = -1
        return torch.where(worlds.to(after.device).view(shape), after, before.rows)
    if isinstance(before, dict) and isinstance(after, dict):
        return {key: _merged(before.get(key), item, worlds) for key, item in after.items()}
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [_merged(old, new, worlds) for old, new in zip(before, after, strict=True)]
    return after


def has_state(value: object) -> TypeGuard[HasState]:
    """Return whether an object saves its own state."""
    return not isinstance(value, type) and callable(getattr(value, "state_dict", None))


def check_savable(value: object, name: str) -> None:
    """Check that an attribute can be saved, without copying the state of objects.

    Raises:
        TypeError: it, or a part of it, has an unsupported type.
    """
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple | deque | set | frozenset):
        for item in value:
            check_savable(item, name)
    elif not has_state(value) and not isinstance(value, torch.Tensor):
        _save(value, name)


def is_dataclass(value: object) -> TypeGuard[DataclassInstance]:
    """Return whether a value is an instance of a dataclass."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def fields_of(value: DataclassInstance) -> dict[str, object]:
    """Return the fields of an instance of a dataclass by name."""
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def generator_state(value: object) -> object:
    """Return the state of a random generator; None for other objects."""
    if isinstance(value, torch.Generator):
        return value.get_state()
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    if isinstance(value, random.Random):
        return value.getstate()
    return None


def _save(value: object, name: str, world: _World | None = None) -> object:
    """Return a copy of a value, or of the part of it that belongs to a world."""
    if isinstance(value, torch.Tensor):
        if world is not None:
            return world.row(value).clone()
        return value.clone()
    if has_state(value):
        return _state_of(value, name, world)
    if type(value) in PLAIN:
        return value
    if isinstance(value, dict):
        return {key: _save(item, f"{name}[{key!r}]", world) for key, item in value.items()}
    if isinstance(value, list | tuple | deque | set | frozenset):
        items = [_save(item, f"{name}[{i}]", world) for i, item in enumerate(value)]
        if isinstance(value, tuple):
            return tuple(items)
        return items
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufc":
        return {_ARRAY: _save(torch.from_numpy(np.array(value)), name, world)}
    state = generator_state(value)
    if state is not None:
        return _save(state, name)
    if is_dataclass(value):
        return _save(fields_of(value), name, world)
    raise TypeError(
        f"{name} is named in state_attributes, but a {type(value).__name__} cannot be saved: keep "
        "tensors, numbers, lists or dicts of them, or an object with state_dict and "
        "load_state_dict."
    )


def _state_of(value: HasState, name: str, world: _World | None) -> object:
    if world is None:
        return value.state_dict()
    if isinstance(value, Stateful):
        return value.state_of_world(world.env_id, world.num_envs)
    if isinstance(value, torch.nn.Module):
        return value.state_dict()  # parameters are shared
    return _save(dict(value.state_dict()), name, world)


def _load(value: object, saved: Any, name: str) -> object:
    if has_state(value):
        value.load_state_dict(saved)
        return value
    if saved is None:
        return None
    if isinstance(value, torch.Tensor):
        if isinstance(saved, int):  # of a version in which Python counted
            saved = torch.full_like(value, saved)
        return _load_tensor(value, saved, name)
    if isinstance(value, dict) and value:
        return _load_dict(value, saved, name)
    if isinstance(value, list | tuple | deque) and len(value) == len(saved):
        pairs = enumerate(zip(value, saved, strict=True))
        return _like(value, [_load(v, s, f"{name}[{i}]") for i, (v, s) in pairs])
    if isinstance(value, list | tuple | deque | set | frozenset) and not any(map(has_state, value)):
        return _like(value, [_unsaved(item) for item in saved])
    if is_dataclass(value):
        for key, item in _load_dict(fields_of(value), saved, name).items():
            object.__setattr__(value, key, item)
        return value
    if generator_state(value) is not None:
        _set_generator(value, saved)
        return value
    return _unsaved(saved)


def _load_tensor(value: torch.Tensor, saved: torch.Tensor, name: str) -> torch.Tensor:
    if value.shape != saved.shape:
        raise ValueError(
            f"Saved '{name}' has shape {tuple(saved.shape)}, expected {tuple(value.shape)}: "
            "use the same configuration and number of worlds."
        )
    if value.is_inference() and not torch.is_inference_mode_enabled():
        value = value.clone()  # an inference tensor, which refuses in-place writes here
    return value.copy_(saved)


def _load_dict(value: dict[str, object], saved: dict[str, object], name: str) -> dict[str, object]:
    if set(value) != set(saved):
        raise ValueError(f"Saved '{name}' has {sorted(saved)}, expected {sorted(value)}.")
    return {key: _load(item, saved[key], f"{name}.{key}") for key, item in value.items()}


def _set_generator(value: object, saved: Any) -> None:
    if isinstance(value, torch.Generator):
        value.set_state(saved.cpu())
    elif isinstance(value, np.random.Generator):
        value.bit_generator.state = _unsaved(saved)
    elif isinstance(value, random.Random):
        value.setstate(saved)


def _like(value: Any, items: list[object]) -> object:
    """Return a collection of the type of `value` with these items."""
    if isinstance(value, deque):
        return deque(items, value.maxlen)
    if hasattr(value, "_fields"):  # a named tuple
        return type(value)(*items)
    return type(value)(items)


def _unsaved(saved: Any) -> Any:
    """Return a copy of a saved value, without an existing object to write to."""
    if isinstance(saved, dict) and [*saved] == [_ARRAY]:
        return saved[_ARRAY].cpu().numpy().copy()[()]
    if isinstance(saved, dict):
        return {key: _unsaved(item) for key, item in saved.items()}
    if isinstance(saved, list | tuple):
        return type(saved)(_unsaved(item) for item in saved)
    return copy.deepcopy(saved)
