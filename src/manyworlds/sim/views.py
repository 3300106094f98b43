"""Views of the arrays of a simulation as torch tensors.

`views.pyi` lists the fields for editors and type checkers; `tools/write_views.py` writes it.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torch

from manyworlds.sim.fields.model_fields import MODEL_FIELD_TABLE
from manyworlds.sim.fields.shared import STATE_FIELDS
from manyworlds.sim.torch_array import TorchArray
from manyworlds.validation.worlds import Worlds

if TYPE_CHECKING:
    from manyworlds.sim.engines.engine import Engine

T = TypeVar("T")

_STATE = frozenset(STATE_FIELDS)


class StructView(Generic[T]):
    """Attribute access to the arrays of a struct, as tensors that share their memory.

    Fields are input of the next call: change them in place (`data.qpos[:] = x`). Assigning an
    attribute raises an error, since it would only rebind the name.

    Args:
        struct: the struct that holds the arrays, as MuJoCo Warp's own or any other object.
        nworld: the number of worlds with which arrays of a single row are shown.
    """

    def __init__(self, struct: T, nworld: int | None = None) -> None:
        self._struct = struct
        self._nworld = nworld

    @property
    def struct(self) -> T:
        """The object whose attributes the view shows."""
        return self._struct

    def clear_cache(self) -> None:
        """Drop the tensors accessed so far, so that the next access makes new ones."""
        for name in self._accessed():
            vars(self).pop(name, None)

    def bound_tensors(self) -> list[torch.Tensor]:
        """Return the tensors accessed so far, in their fields' shapes, including nested structs."""
        tensors: list[torch.Tensor] = []
        for value in self._accessed().values():
            if isinstance(value, StructView):
                tensors += value.bound_tensors()
            elif isinstance(value, torch.Tensor):
                tensors.append(value)
        return tensors

    def _accessed(self) -> dict[str, object]:
        """Return tensors and nested views by field: attributes, so that an access is no call."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = self._read(name)
        if isinstance(value, torch.Tensor | StructView):
            vars(self)[name] = value
        return value

    def _read(self, name: str) -> object:
        """Return a field; tensors and views are kept."""
        value = getattr(self._struct, name)
        if dataclasses.is_dataclass(value):
            return StructView(value, self._nworld)
        # An owner of a Warp array has imported Warp.
        warp = sys.modules.get("warp")
        if warp is None or not isinstance(value, warp.array):
            return value
        # MuJoCo Warp's annotations distinguish per-world rows from arrays with a single element.
        spec = getattr(type(self._struct), "__dataclass_fields__", {}).get(name)
        nworld = None
        if spec is None or getattr(spec.type, "shape", ("*",))[:1] == ("*",):
            nworld = self._nworld
        return TorchArray.follow(lambda: getattr(self._struct, name), nworld)

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("_"):
            super().__setattr__(name, value)
            return
        if self._accessed().get(name) is value:
            return  # the second half of an in-place operator, as in `data.qpos += 1`
        raise AttributeError(
            f"Cannot set attribute '{name}' on {type(self).__name__}: "
            f"write in place instead, as in `.{name}[:] = values`."
        )

    def __dir__(self) -> list[str]:
        return sorted(dir(self._struct))


WarpBridge = StructView


class DataView(StructView[Any]):
    """State, inputs and derived fields of all worlds, each a tensor of shape (num_envs, ...).

    A field is bound at its first access, so that no call copies a field that nobody reads. Write in
    place: `data.qpos[:] = x`.

    Args:
        engine: the engine that holds the fields.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._watchers: list[Callable[[Worlds], None]] = []
        self._before_derived: Callable[[], object] | None = None
        # Tensors of fields that are not state; no attributes while an action precedes an access.
        self._derived: dict[str, object] = {}

    @property
    def struct(self) -> DataView:
        """The view itself."""
        return self

    def on_change(self, watcher: Callable[[Worlds], None]) -> None:
        """Register a callback for calls of the simulation that change worlds.

        Args:
            watcher: function that takes the changed worlds.
        """
        if watcher not in self._watchers:
            self._watchers.append(watcher)

    def changed(self, worlds: Worlds) -> None:
        """Call the watchers with the worlds that have changed."""
        for watcher in self._watchers:
            watcher(worlds)

    def before_derived(self, action: Callable[[], object] | None) -> None:
        """Call an action before each access to a field that is not state; None for no action."""
        self._before_derived = action
        if action is None:
            vars(self).update(self._derived)
        else:
            for name in self._derived:
                vars(self).pop(name, None)

    def state_versions(self) -> dict[str, int]:
        """Return torch's version counter of each state field accessed so far, by name."""
        accessed = vars(self)
        return {name: accessed[name]._version for name in STATE_FIELDS if name in accessed}

    def clear_cache(self) -> None:
        """Drop the tensors accessed so far, so that the next access makes new ones."""
        super().clear_cache()
        self._derived.clear()

    def _accessed(self) -> dict[str, object]:
        return super()._accessed() | self._derived

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in _STATE:
            return super().__getattr__(name)
        if self._before_derived is not None:
            self._before_derived()
        if name in self._derived:
            return self._derived[name]
        value = self._read(name)
        if isinstance(value, torch.Tensor | StructView):
            self._derived[name] = value
            if self._before_derived is None:
                vars(self)[name] = value
        return value

    def _read(self, name: str) -> object:
        value = self._engine.data_field(name)
        if dataclasses.is_dataclass(value):
            return StructView(value, self._engine.num_envs)
        return value

    def __dir__(self) -> list[str]:
        return self._engine.data_fields()


class _ModelFields(StructView[Any]):
    """Fields that worlds share until the first write to one, shown as (num_envs, ...).

    Fields that do not differ between worlds on both engines, as ids and types, are shown without
    a dimension of worlds and cannot be written. `Simulation.expand_model_fields` gives them one
    where the engine can.
    """

    _prefix = ""
    """Beginning of the fields' names in the engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        # No attributes, because an expansion changes their shapes.
        self._common: dict[str, object] = {}

    @property
    def struct(self) -> _ModelFields:
        """The view itself."""
        return self

    def clear_cache(self) -> None:
        """Drop the tensors accessed so far, so that the next access makes new ones."""
        super().clear_cache()
        self._common.clear()

    def _accessed(self) -> dict[str, object]:
        return super()._accessed() | self._common

    def __getattr__(self, name: str) -> Any:
        field = self._prefix + name
        may_differ = field in MODEL_FIELD_TABLE or name.startswith("_")
        if may_differ or field in self._engine.expanded:
            return super().__getattr__(name)
        if name not in self._common:
            value = self._read(name)
            if isinstance(value, torch.Tensor):
                source = functools.partial(self._engine.warp_array, field)
                value = TorchArray.wrap(value[0], functools.partial(self._refuse, field), source)
            self._common[name] = value
        return self._common[name]

    def _refuse(self, field: str, make: bool) -> None:
        """Refuse a write to a field without rows of worlds.

        Raises:
            ValueError: `make` asks for rows.
        """
        if make:
            problem = self._engine.expansion_problem(field)
            if problem is None:
                problem = (
                    f"All worlds share '{field}', so it has no dimension of worlds: call "
                    f"sim.expand_model_fields(('{field}',)) first, which gives each world a row."
                )
            raise ValueError(problem)

    def _read(self, name: str) -> object:
        engine = self._engine
        field = self._prefix + name
        value = engine.model_field(field)
        if not isinstance(value, torch.Tensor) or field in engine.expanded:
            return value
        shared = value.expand(engine.num_envs, *value.shape[1:])
        source = functools.partial(engine.warp_array, field)
        return TorchArray.wrap(shared, functools.partial(self._rows, name), source)

    def _rows(self, name: str, make: bool) -> torch.Tensor | None:
        """Return the rows of worlds of a field, or None if there are none and none are made."""
        field = self._prefix + name
        if field not in self._engine.expanded:
            if not make:
                return None
            self._engine.expand(field)
        if isinstance(vars(self).get(name), TorchArray):
            del vars(self)[name]
        return getattr(self, name)

    def __dir__(self) -> list[str]:
        return self._engine.model_fields(self._prefix)


class OptionView(_ModelFields):
    """Physics options: real numbers and vectors as tensors (num_envs, ...), others as integers."""

    _prefix = "opt."


class ModelView(_ModelFields):
    """Model fields of all worlds, each a tensor of shape (num_envs, ...), and options as `opt`.

    Worlds share a field until its first in-place write, which gives each world its own row. Fields
    that worlds always share, such as ids and types, have no dimension of worlds.

    Args:
        engine: the engine that holds the fields.
        defaults: function that returns a field as compiled: rows of all worlds, or one row.
    """

    def __init__(self, engine: Engine, defaults: Callable[[str], torch.Tensor]) -> None:
        super().__init__(engine)
        self._defaults = defaults

    def default_rows(self, field: str) -> torch.Tensor:
        """Return a field as compiled, shape (num_envs, ...) with variants, else (1, ...)."""
        return self._defaults(field)

    def _read(self, name: str) -> object:
        if name == "opt":
            return OptionView(self._engine)
        return super()._read(name)
