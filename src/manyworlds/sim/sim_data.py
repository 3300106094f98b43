"""Views of an engine's arrays as torch tensors."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torch

from manyworlds.sim.fields.shared import STATE_FIELDS

if TYPE_CHECKING:
    from manyworlds.sim.engines.engine import Engine

T = TypeVar("T")


class WarpBridge(Generic[T]):
    """Attribute access to the arrays of an engine's struct, as tensors that share their memory.

    Fields are input of the next call: change them in place (`data.qpos[:] = x`). Assigning an
    attribute raises an error, since it would only rebind the name.

    Args:
        struct: the struct that holds the arrays.
        nworld: the number of worlds with which shared fields are shown.
        engine: for a model, the engine that can expand shared fields to one row per world.
        prefix: the prefix of this struct's fields in the names of model fields, such as 'opt.'.
        defaults: for a model, a function that returns a field as compiled: rows of all worlds, or
            one row.
    """

    def __init__(
        self,
        struct: T,
        nworld: int | None = None,
        *,
        engine: Engine | None = None,
        prefix: str = "",
        defaults: Callable[[str], torch.Tensor] | None = None,
    ) -> None:
        vars(self).update(_struct=struct, _nworld=nworld, _engine=engine, _prefix=prefix, _cache={})
        vars(self).update(_defaults=defaults, _watchers=[], _before_derived=None)

    @property
    def struct(self) -> T:
        """The engine's own struct."""
        return vars(self)["_struct"]

    def default_rows(self, field: str) -> torch.Tensor:
        """Return a model field as compiled, shape (num_envs, ...) with variants, else (1, ...)."""
        return vars(self)["_defaults"](field)

    def on_change(self, watcher: Callable[[Any], None]) -> None:
        """Register a callback for calls of the simulation that change worlds.

        Args:
            watcher: function that takes the ids of the changed worlds, or None for all.
        """
        watchers = vars(self)["_watchers"]
        if watcher not in watchers:
            watchers.append(watcher)

    def before_derived(self, action: Callable[[], object] | None) -> None:
        """Call an action before each access to a field that is not state; None for no action."""
        vars(self)["_before_derived"] = action

    def _changed(self, env_ids: Any) -> None:
        """Call the watchers with the ids of the changed worlds; None for all."""
        for watcher in vars(self)["_watchers"]:
            watcher(env_ids)

    def clear_cache(self) -> None:
        """Drop wrapped arrays, so that the next access wraps them again."""
        vars(self)["_cache"].clear()

    def versions(self, fields: Iterable[str]) -> dict[str, int]:
        """Return torch's version counter of the fields accessed so far, by name."""
        cache = vars(self)["_cache"]
        with torch._C.DisableTorchFunctionSubclass():
            return {name: cache[name]._version for name in fields if name in cache}

    def bound_tensors(self) -> list[torch.Tensor]:
        """Return the tensors accessed so far, in their fields' shapes, including nested structs."""
        cached = [*vars(self)["_cache"].values()]
        inner = (part.bound_tensors() for part in cached if isinstance(part, WarpBridge))
        return [*(t for t in cached if isinstance(t, torch.Tensor)), *chain(*inner)]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        own = vars(self)
        if own["_before_derived"] is not None and name not in STATE_FIELDS:
            own["_before_derived"]()
        cache = own["_cache"]
        if name not in cache:
            value = self._wrap(name, getattr(self.struct, name))
            if not isinstance(value, torch.Tensor | WarpBridge):
                return value
            cache[name] = value
        return cache[name]

    def _wrap(self, name: str, value: Any) -> Any:
        engine, nworld = vars(self)["_engine"], vars(self)["_nworld"]
        if engine is None:
            return self._wrap_raw(name, value)
        if not isinstance(value, torch.Tensor):
            prefix = getattr(value, "_prefix", "")
            return WarpBridge(value, nworld, engine=engine, prefix=prefix) if prefix else value
        field = vars(self)["_prefix"] + name
        if field in engine.expanded:
            return value
        from manyworlds.sim.torch_array import TorchArray

        def rows(make: bool) -> torch.Tensor | None:
            if field not in engine.expanded:
                if not make:
                    return None
                engine.expand(field)
            if isinstance(vars(self)["_cache"].get(name), TorchArray):
                del vars(self)["_cache"][name]
            return getattr(self, name)

        array = TorchArray.wrap(value.expand(nworld, *value.shape[1:]), rows)
        if wp_array := getattr(self.struct, "_wp_array", None):
            array._source = lambda: wp_array(name)
        return array

    def _wrap_raw(self, name: str, value: Any) -> Any:
        """Wrap an attribute of a Warp object."""
        nworld = vars(self)["_nworld"]
        if isinstance(value, torch.Tensor):
            return value
        if dataclasses.is_dataclass(value):
            return WarpBridge(value, nworld)
        # An owner of a Warp array has imported Warp.
        warp = sys.modules.get("warp")
        if warp is None or not isinstance(value, warp.array):
            return value
        from manyworlds.sim.torch_array import TorchArray

        # MuJoCo Warp's annotations distinguish per-world rows from arrays with a single element.
        spec = getattr(type(self.struct), "__dataclass_fields__", {}).get(name)
        rows_of_worlds = spec is None or getattr(spec.type, "shape", ("*",))[:1] == ("*",)
        return TorchArray._follow(
            lambda: getattr(self.struct, name), nworld if rows_of_worlds else None
        )

    def __setattr__(self, name: str, value: Any) -> None:
        cache = vars(self)["_cache"]
        if name in cache and value is cache[name]:
            return  # the second half of an in-place operator, as in `data.qpos += 1`
        raise AttributeError(
            f"Cannot set attribute '{name}' on {type(self).__name__}: "
            f"write in place instead, as in `.{name}[:] = values`."
        )

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.struct)})
