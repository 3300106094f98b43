"""A torch device whose memory is that of the CPU, and that counts what moves to and from it.

As on a GPU, an operation with tensors of this device and of the CPU is an error. Import this module
before torch computes the first gradient of the process, when it makes a list of all devices.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.backend_registration import (
    _DummyBackendModule,
    _setup_privateuseone_for_python_backend,
)

NAME = "elsewhere"
DEVICE = torch.device("privateuseone", 0)
_COPIES = (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)


class _Backend(_DummyBackendModule):
    """Module of the device, with what autocast and TensorDict ask for."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]

    def synchronize(self) -> None:
        """Return, since nothing runs in the background."""


_setup_privateuseone_for_python_backend(NAME, backend_module=_Backend())


class _Tensor(torch.Tensor):
    """Tensor of the device, with its values in a tensor of the CPU."""

    values: torch.Tensor

    @staticmethod
    def __new__(cls, values: torch.Tensor) -> _Tensor:
        with torch.inference_mode(False):
            tensor = torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
                cls,
                values.shape,
                strides=values.stride(),
                storage_offset=values.storage_offset(),
                dtype=values.dtype,
                device=DEVICE,
            )
        tensor.values = values
        return tensor

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise AssertionError(f"{func} ran outside of the block `with Elsewhere()`")


class _Factories(TorchFunctionMode):
    """Context that makes tensors from Python's numbers, which torch does out of sight."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.tensor and torch.device(kwargs.get("device") or "cpu") == DEVICE:
            return torch.tensor(*args, **{**kwargs, "device": None}).to(DEVICE)
        return func(*args, **kwargs)


class Elsewhere(TorchDispatchMode):
    """Context in which the device works."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[int] = []
        """Bytes of each copy from the CPU to the device, scalars aside."""
        self.fetched: list[int] = []
        """Bytes of each copy from the device to the CPU, scalars aside."""

    def __enter__(self) -> Elsewhere:
        self._factories = _Factories()
        self._factories.__enter__()
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._factories.__exit__(*error)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation on the values."""
        kwargs = dict(kwargs or {})
        TorchDispatchMode.__enter__(self)
        try:  # in inference mode, operations that consist of others arrive as a whole
            parts = func.decompose(*args, **kwargs)
        finally:
            TorchDispatchMode.__exit__(self, None, None, None)
        if parts is not NotImplemented:
            return parts
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        here = [t for t in given if not isinstance(t, _Tensor) and t.dim() > 0]
        is_there = len(given) > 0 and isinstance(given[0], _Tensor)
        source_is_there = len(given) > 0 and isinstance(given[-1], _Tensor)
        if kwargs.get("device") is not None:
            is_there = torch.device(kwargs["device"]).type == DEVICE.type
            kwargs["device"] = "cpu"
        if func in _COPIES:
            if given[-1].dim() > 0 and is_there != source_is_there:
                size = given[-1].numel() * given[-1].element_size()
                (self.sent if is_there else self.fetched).append(size)
        elif here and len(here) < len(given) and any(isinstance(t, _Tensor) for t in given):
            raise RuntimeError(f"{func} got tensors of two devices")
        else:
            is_there = is_there or any(isinstance(t, _Tensor) for t in given)
        args, kwargs = tree_map_only(_Tensor, lambda t: t.values, (args, kwargs))
        result = func(*args, **kwargs)
        own = {id(t.values): t for t in given if isinstance(t, _Tensor)}

        def wrap(value: torch.Tensor) -> torch.Tensor:
            if not is_there:
                return value
            return own[id(value)] if id(value) in own else _Tensor(value)

        return tree_map_only(torch.Tensor, wrap, result)
