"""MuJoCo Warp's dataclasses as structs of tensors that share their memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Any

import mujoco
import numpy as np
import torch
import warp as wp

from manyworlds.sim.fields.shared import conditional_field_reason
from manyworlds.validation.names import near_matches

# Arrays that MuJoCo Warp fills differently from MuJoCo C, or only while bodies may sleep.
_INTERNAL = {"qH", "qHDiagInv", "nisland", "nidof", "body_awake_ind", "dof_awake_ind"}


def to_torch(array: Any) -> torch.Tensor:
    """Return a tensor that shares a Warp array's memory, with the array's shape."""
    # A tensor created in inference mode cannot be written in place outside of it.
    with torch.inference_mode(False):
        return wp.to_torch(array)


def repeat_rows(array: Any, nworld: int) -> Any:
    """Return a new Warp array with one row per world, each a copy of the only row of `array`."""
    rows = wp.empty((nworld, *array.shape[1:]), dtype=array.dtype, device=array.device)
    to_torch(rows).copy_(to_torch(array))
    return rows


class WarpStruct:
    """Attributes of a MuJoCo Warp dataclass, as tensors that share their memory."""

    _kind = ""
    _batched = ""
    """Name of the leading dimension of arrays with one row per world."""
    _nested: tuple[str, ...] = ()
    """Names of nested dataclasses, which are returned unwrapped."""

    def __init__(self, struct: Any, mj_model: mujoco.MjModel, device: torch.device) -> None:
        self._struct = struct
        self._mj_model = mj_model
        self._device = device
        self._specs: dict[str, Any] = {f.name: f.type for f in dataclasses.fields(struct)}
        # The Warp array behind each tensor, which may have been replaced since.
        self._tensors: dict[str, tuple[Any, torch.Tensor]] = {}

    def _per_world(self, field: str) -> bool:
        """Return whether an array has, or may have, one row per world."""
        return getattr(self._specs.get(field), "shape", ())[:1] == (self._batched,)

    def __getattr__(self, field: str) -> Any:
        if field.startswith("_"):
            raise AttributeError(field)
        value = getattr(self._struct, field, None)
        if isinstance(value, int | float) or field in self._nested:
            return value
        shown = self._tensors.get(field)
        if shown is None or shown[0] is not value:
            shown = self._tensors[field] = value, self._wrap(field, value)
        return shown[1]

    def _wrap(self, field: str, value: Any) -> torch.Tensor:
        if reason := self._absence(field):
            raise AttributeError(f"'{field}' is not available: {reason}.")
        tensor = to_torch(value) if isinstance(value, wp.array) else None
        tensor = self._view(field, tensor)
        if tensor is None:
            raise AttributeError(
                f"'{field}' is not a {self._kind} field of the warp engine."
                + near_matches(field, dir(self))
            )
        return tensor

    def _wp_array(self, field: str) -> Any:
        """Return Warp's own array of a field."""
        return getattr(self._struct, field)

    def _view(self, field: str, tensor: torch.Tensor | None) -> torch.Tensor | None:
        """Return the final view of an array; `tensor` is None if Warp has no such array."""
        return tensor

    def _absence(self, field: str) -> str | None:
        """Return the reason why an existing Warp array is not shown; None if it is."""
        return None

    def __dir__(self) -> list[str]:
        arrays = [f for f in self._specs if isinstance(getattr(self._struct, f), wp.array)]
        return sorted([*self._nested, *(f for f in arrays if not self._absence(f))])


class WarpData(WarpStruct):
    """State, inputs, and outputs of steps."""

    _kind = "data"
    _batched = "nworld"
    _nested = ("contact", "efc")

    def _absence(self, field: str) -> str | None:
        if field in _INTERNAL:
            return "MuJoCo Warp uses it for its own purposes"
        return conditional_field_reason(self._mj_model, field)

    def _bound(self) -> dict[str, torch.Tensor]:
        """Per-world tensors that have been accessed."""
        return {field: getattr(self, field) for field in self._tensors if self._per_world(field)}


class WarpModel(WarpStruct):
    """The model, including MuJoCo's fields that Warp does not need, and options as `opt`."""

    _kind = "model"
    _batched = "*"
    _nested = ("opt",)

    def __init__(self, struct: Any, mj_model: mujoco.MjModel, device: torch.device) -> None:
        super().__init__(struct, mj_model, device)
        self.opt = _WarpOptions(struct.opt, mj_model, device)
        self._stale: frozenset[str] = frozenset()

    def _forget(self, fields: Collection[str]) -> None:
        """Hide fields whose compiled values may no longer be valid."""
        self._stale = frozenset(fields)
        for field in self._stale:
            self._tensors.pop(field, None)

    def _absence(self, field: str) -> str | None:
        if field not in self._stale:
            return None
        return (
            "mj_setConst computes it, but MuJoCo Warp does not do so for each world; after "
            "recompute_constants its compiled value may be wrong; use engine='native'"
        )

    def _view(self, field: str, tensor: torch.Tensor | None) -> torch.Tensor | None:
        if tensor is None:
            # Colors, groups and similar fields do not affect physics, but users read them.
            value = getattr(self._mj_model, field, None)
            if not isinstance(value, np.ndarray):
                return None
            dtype = np.float32 if value.dtype.kind == "f" else value.dtype
            with torch.inference_mode(False):
                tensor = torch.from_numpy(value.astype(dtype)).to(self._device)
        return tensor if self._per_world(field) else tensor[None]


class _WarpOptions(WarpStruct):
    _kind = "option"
    _batched = "*"
    _prefix = "opt."
