"""A model field that all worlds share, as a tensor."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    import warp as wp

_AUGMENTED = {
    "__iadd__",
    "__isub__",
    "__imul__",
    "__idiv__",
    "__itruediv__",
    "__ifloordiv__",
    "__imod__",
    "__ipow__",
    "__iand__",
    "__ior__",
    "__ixor__",
    "__ilshift__",
    "__irshift__",
}
# These return a view of rows, but a copy of what worlds share.
_VIEWS_OF_ROWS = {"contiguous", "flatten", "ravel", "reshape", "reshape_as"}


class TorchArray(torch.Tensor):
    """A model field that all worlds share, shown as `(num_envs, ...)`.

    It reads like any tensor. Its first in-place write, also through a slice or a reshaped view,
    gives the field one row per world and then writes there, so that a write to one world never
    affects the others. Once the field has its own rows, this array and its views read and write
    them. A write to a reshaped array that can only be a copy raises ValueError.

    Args:
        wp_array: a Warp array, whose memory the new array shares.
        nworld: the number of worlds with which to show an array that has one row for all of them.
    """

    _rows: Callable[[bool], torch.Tensor | None]
    _source: Callable[[], object] | None = None

    def __new__(cls, wp_array: wp.array, nworld: int | None = None) -> TorchArray:
        """Create an array that shares the memory of a Warp array."""
        return cls.follow(lambda: wp_array, nworld)

    @classmethod
    def follow(cls, source: Callable[[], wp.array], nworld: int | None) -> TorchArray:
        """Create an array that shares the memory of the Warp array that `source()` returns.

        Args:
            source: function that returns the present Warp array.
            nworld: the number of worlds with which to show an array of one row; None for one.
        """
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
                    "All worlds share this Warp array, so a write to one of them would change all: "
                    "give the field rows with sim.expand_model_fields first."
                )
            return None

        return cls.wrap(tensor, rows, source)

    @property
    def wp_array(self) -> Any:
        """Warp's own array of the whole field; not available on the native engine."""
        array = None
        if self._source is not None:
            array = self._source()
        if array is None:
            raise AttributeError(
                "'wp_array' is not available: only whole fields of the warp engine are Warp arrays."
            )
        return array

    @classmethod
    def wrap(
        cls,
        shared: torch.Tensor,
        rows: Callable[[bool], torch.Tensor | None],
        source: Callable[[], object] | None = None,
    ) -> TorchArray:
        """Wrap a tensor of shared memory.

        Args:
            shared: the tensor to show while worlds share the field, shape (num_envs, ...).
            rows: function that returns the per-world tensor, or None if there is none; if called
                with True, it creates one.
            source: function that returns the whole field as a Warp array, or None.
        """
        array = shared.as_subclass(cls)
        array._rows = rows
        array._source = source
        return array

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., object],
        types: Collection[type],
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        """Redirect in-place writes to the per-world tensor; track views of shared memory."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name.startswith("__"):
            writes = name == "__setitem__" or name in _AUGMENTED
        else:
            writes = name.endswith("_") and not name.startswith("_") and name != "requires_grad_"
        source: TorchArray | None = None
        if args and isinstance(args[0], TorchArray):
            source = args[0]
        plain = [_plain(arg, writes and i == 0) for i, arg in enumerate(args)]
        named = {
            key: _plain(arg, key == "out" or (writes and not args)) for key, arg in kwargs.items()
        }
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*plain, **named)
        if source is None or writes or source._rows(False) is not None:
            return result
        copied = name in _VIEWS_OF_ROWS
        return cls._track(result, source, lambda base: func(base, *plain[1:], **named), copied)

    @classmethod
    def _track(
        cls,
        result: object,
        source: TorchArray,
        view: Callable[[torch.Tensor], Any],
        copied: bool = False,
    ) -> object:
        """Wrap a view of `source`'s memory; `view` finds it in the per-world tensor.

        With `copied`, the result may be a copy of the memory that worlds share.
        """
        if isinstance(result, list | tuple):
            parts = [
                cls._track(part, source, lambda base, i=i: view(base)[i])
                for i, part in enumerate(result)
            ]
            if type(result) not in (list, tuple):
                return result  # a named tuple, as of torch.max, contains no views
            return type(result)(parts)
        if isinstance(result, np.ndarray):
            result = result.view()
            result.flags.writeable = False
        if not isinstance(result, torch.Tensor):
            return result
        if not copied and not _shares_memory(result, source):
            return result

        def rows(make: bool) -> torch.Tensor | None:
            base = source._rows(make)
            if base is None:
                return None
            found = view(base)
            if make and not _shares_memory(found, base):
                raise ValueError(
                    "A write to this array would be lost, because it is a copy of a part of the "
                    "field: write to the field by index, or clone() the array to keep a copy."
                )
            return found

        return cls.wrap(result, rows)


def _plain(arg: Any, write: bool) -> Any:
    """Replace a TorchArray, also inside a list or tuple, by the tensor that it represents."""
    if type(arg) in (list, tuple):
        return type(arg)(_plain(part, write) for part in arg)
    if not isinstance(arg, TorchArray):
        return arg
    rows = arg._rows(write)
    if rows is not None:
        return rows
    with torch._C.DisableTorchFunctionSubclass():
        return arg.as_subclass(torch.Tensor)


def _shares_memory(result: object, source: torch.Tensor) -> bool:
    if not isinstance(result, torch.Tensor):
        return False
    with torch._C.DisableTorchFunctionSubclass():
        return result.untyped_storage().data_ptr() == source.untyped_storage().data_ptr()
