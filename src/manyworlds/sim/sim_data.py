"""Views of an engine's arrays as torch tensors."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import torch

if TYPE_CHECKING:
    from manyworlds.sim.engines.engine import Engine

T = TypeVar("T")

_AUGMENTED = {
    f"__i{name}__"
    for name in (
        *("add", "sub", "mul", "div", "truediv", "floordiv", "mod", "pow"),
        *("and", "or", "xor", "lshift", "rshift"),
    )
}


class TorchArray(torch.Tensor):
    """A model field that all worlds share, seen as `(num_envs, ...)`.

    It reads like any tensor. Its first in-place write, also through a slice of it, gives the field
    one row per world and then writes there, so that a write to one world never reaches the others.
    Once the field has its rows, this array and its slices read and write those.

    Args:
        wp_array: a Warp array, whose memory the new array shares.
        nworld: how many worlds to show an array for that has one row for all of them.
    """

    _rows: Callable[[bool], torch.Tensor | None]
    _source: Callable[[], Any] | None = None

    def __new__(cls, wp_array: Any, nworld: int | None = None) -> TorchArray:
        """Share the memory of a Warp array."""
        return cls._follow(lambda: wp_array, nworld)

    @classmethod
    def _follow(cls, source: Callable[[], Any], nworld: int | None) -> TorchArray:
        """Share the memory of whatever Warp array `source` returns at the time of use."""
        from manyworlds.sim.engines.warp_views import to_torch

        first = source()
        tensor = to_torch(first)
        count = nworld or 1
        shared = count > 1 and tensor.shape[:1] == (1,)
        if shared:
            tensor = tensor.expand(count, *tensor.shape[1:])

        def rows(make: bool) -> torch.Tensor | None:
            if source() is not first:
                return to_torch(source())
            if not shared:
                return tensor
            if make:
                raise ValueError(
                    "All worlds share this Warp array, so a write to one of them would reach all: "
                    "give the field rows with sim.expand_model_fields first."
                )
            return None

        array = cls.wrap(tensor, rows)
        array._source = source
        return array

    @property
    def wp_array(self) -> Any:
        """Warp's own array of the whole field; the native engine has none."""
        if self._source is None:
            raise AttributeError(
                "'wp_array' is not available: only whole fields of the warp engine are Warp arrays."
            )
        return self._source()

    @classmethod
    def wrap(cls, shared: torch.Tensor, rows: Callable[[bool], torch.Tensor | None]) -> TorchArray:
        """Wrap a tensor of shared memory.

        Args:
            shared: what to show while worlds share the field.
            rows: returns the per-world tensor, or None while there is none; called with True, it
                makes one first.
        """
        array = shared.as_subclass(cls)
        array._rows = rows
        return array

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Send in-place writes to the per-world tensor; keep track of views of shared memory."""
        kwargs = kwargs or {}
        writes = _writes_in_place(getattr(func, "__name__", ""))
        source = args[0] if args and isinstance(args[0], TorchArray) else None
        plain = [_plain(arg, writes and i == 0) for i, arg in enumerate(args)]
        named = {
            key: _plain(arg, key == "out" or (writes and not args)) for key, arg in kwargs.items()
        }
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*plain, **named)
        if source is None or writes or source._rows(False) is not None:
            return result
        return cls._track(result, source, lambda base: func(base, *plain[1:], **named))

    @classmethod
    def _track(cls, result: Any, source: TorchArray, view: Callable[[torch.Tensor], Any]) -> Any:
        """Wrap what shares memory with `source`; `view` finds it in the per-world tensor."""
        if isinstance(result, list | tuple):
            parts = [
                cls._track(part, source, lambda base, i=i: view(base)[i])
                for i, part in enumerate(result)
            ]
            # A named tuple, as of torch.max, holds no views.
            return type(result)(parts) if type(result) in (list, tuple) else result
        if isinstance(result, np.ndarray):
            result = result.view()
            result.flags.writeable = False
        if not _shares_memory(result, source):
            return result

        def rows(make: bool) -> torch.Tensor | None:
            base = source._rows(make)
            return None if base is None else view(base)

        return cls.wrap(result, rows)


def _plain(arg: Any, write: bool) -> Any:
    """Replace a TorchArray, also inside a list or tuple, by the tensor that it stands for."""
    if type(arg) in (list, tuple):
        return type(arg)(_plain(part, write) for part in arg)
    if not isinstance(arg, TorchArray):
        return arg
    rows = arg._rows(write)
    if rows is not None:
        return rows
    with torch._C.DisableTorchFunctionSubclass():
        return arg.as_subclass(torch.Tensor)


def _shares_memory(result: Any, source: TorchArray) -> bool:
    if not isinstance(result, torch.Tensor):
        return False
    with torch._C.DisableTorchFunctionSubclass():
        return result.untyped_storage().data_ptr() == source.untyped_storage().data_ptr()


def _writes_in_place(name: str) -> bool:
    if name.startswith("__"):
        return name == "__setitem__" or name in _AUGMENTED
    return name.endswith("_") and not name.startswith("_") and name != "requires_grad_"


class WarpBridge(Generic[T]):
    """Attribute access to an engine's struct, as tensors that share its memory.

    Fields are input of the next call: change them in place (`data.qpos[:] = x`). Assigning an
    attribute raises, since it would only rebind the name.

    Args:
        struct: what holds the arrays.
        nworld: the number of worlds that shared fields are shown for.
        engine: for a model, the engine that can expand shared fields to one row per world.
        prefix: what precedes the names of this struct's fields in those of the model: 'opt.'.
        defaults: for a model, returns a field as compiled: rows of all worlds, or one for all.
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
        vars(self).update(_defaults=defaults, _watchers=[])

    @property
    def struct(self) -> T:
        """The engine's own struct."""
        return vars(self)["_struct"]

    def default_rows(self, field: str) -> torch.Tensor:
        """Return a model field as compiled: (num_envs, ...) with variants, else (1, ...)."""
        return vars(self)["_defaults"](field)

    def on_change(self, watcher: Callable[[Any], None]) -> None:
        """Have `watcher(env_ids)` called after each call of the simulation that changes worlds.

        Args:
            watcher: takes the ids of these worlds, or None for all.
        """
        watchers = vars(self)["_watchers"]
        if watcher not in watchers:
            watchers.append(watcher)

    def _changed(self, env_ids: Any) -> None:
        """Tell the watchers which worlds were changed; None for all."""
        for watcher in vars(self)["_watchers"]:
            watcher(env_ids)

    def clear_cache(self) -> None:
        """Forget wrapped arrays, so that the next access wraps them anew."""
        vars(self)["_cache"].clear()

    def bound_tensors(self) -> list[torch.Tensor]:
        """Return the tensors that were asked for so far, those of structs within included."""
        cached = [*vars(self)["_cache"].values()]
        inner = (part.bound_tensors() for part in cached if isinstance(part, WarpBridge))
        return [*(t for t in cached if isinstance(t, torch.Tensor)), *chain(*inner)]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        cache = vars(self)["_cache"]
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
        """Wrap what an object of Warp's holds."""
        nworld = vars(self)["_nworld"]
        if isinstance(value, torch.Tensor):
            return value
        if dataclasses.is_dataclass(value):
            return WarpBridge(value, nworld)
        # Whoever holds one of Warp's arrays has imported Warp.
        warp = sys.modules.get("warp")
        if warp is None or not isinstance(value, warp.array):
            return value
        # MuJoCo Warp's annotations tell rows of worlds from arrays that happen to have one element.
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
