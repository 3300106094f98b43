"""Tensors over the arrays of MuJoCo Warp's dataclasses."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Any

import mujoco
import numpy as np
import torch
import warp as wp

from manyworlds.sim.fields.defaults import as_tensor
from manyworlds.sim.fields.shared import conditional_field_reason
from manyworlds.validation.names import near_matches

# Arrays that MuJoCo Warp fills differently from MuJoCo C, or only while bodies may sleep.
_INTERNAL = {"qH", "qHDiagInv", "nisland", "nidof", "body_awake_ind", "dof_awake_ind"}


def to_torch(array: wp.array) -> torch.Tensor:
    """Return a tensor that shares a Warp array's memory, with the array's shape."""
    # A tensor created in inference mode cannot be written in place outside of it.
    with torch.inference_mode(False):
        return wp.to_torch(array)


def repeat_rows(array: wp.array, nworld: int) -> wp.array:
    """Return a new Warp array with one row per world, each a copy of the only row of `array`."""
    rows = wp.empty((nworld, *array.shape[1:]), dtype=array.dtype, device=array.device)
    to_torch(rows).copy_(to_torch(array))
    return rows


class WarpFields:
    """Arrays of a MuJoCo Warp dataclass as tensors that share their memory, by field.

    Args:
        struct: the dataclass.
        mj_model: the compiled model.
        device: device of the tensors.
    """

    kind = ""
    """Word for a field in messages."""
    batched = ""
    """Name of the leading dimension of arrays with one row per world."""
    nested: tuple[str, ...] = ()
    """Names of nested dataclasses, which are returned as they are."""

    def __init__(self, struct: Any, mj_model: mujoco.MjModel, device: torch.device) -> None:
        self.struct = struct
        self._mj_model = mj_model
        self._device = device
        self._specs: dict[str, Any] = {f.name: f.type for f in dataclasses.fields(struct)}
        # The Warp array behind each tensor, which may have been replaced since.
        self._tensors: dict[str, tuple[object, torch.Tensor]] = {}

    def is_per_world(self, field: str) -> bool:
        """Return whether an array has, or may have, one row per world."""
        return getattr(self._specs.get(field), "shape", ())[:1] == (self.batched,)

    def get(self, field: str) -> object:
        """Return a tensor, a number or a nested dataclass.

        Raises:
            AttributeError: there is no such field.
        """
        value = getattr(self.struct, field, None)
        if isinstance(value, int | float) or field in self.nested:
            return value
        return self.tensor(field)

    def tensor(self, field: str) -> torch.Tensor:
        """Return the tensor of an array."""
        array = getattr(self.struct, field, None)
        shown = self._tensors.get(field)
        if shown is None or shown[0] is not array:
            shown = (array, self._wrap(field, array))
            self._tensors[field] = shown
        return shown[1]

    def names(self) -> list[str]:
        """Return the names of arrays and nested dataclasses."""
        arrays = [f for f in self._specs if isinstance(getattr(self.struct, f), wp.array)]
        return sorted([*self.nested, *(f for f in arrays if not self.absence(f))])

    def absence(self, field: str) -> str | None:
        """Return the reason why an existing Warp array is not shown; None if it is."""
        return None

    def view(self, field: str, tensor: torch.Tensor | None) -> torch.Tensor | None:
        """Return the final view of an array; `tensor` is None if Warp has no such array."""
        return tensor

    def _wrap(self, field: str, value: object) -> torch.Tensor:
        reason = self.absence(field)
        if reason:
            raise AttributeError(f"'{field}' is not available: {reason}.")
        tensor = None
        if isinstance(value, wp.array):
            tensor = to_torch(value)
        tensor = self.view(field, tensor)
        if tensor is None:
            raise AttributeError(
                f"'{field}' is not a {self.kind} field of the warp engine."
                + near_matches(field, self.names())
            )
        return tensor


class DataFields(WarpFields):
    """State, inputs, and outputs of steps."""

    kind = "data"
    batched = "nworld"
    nested = ("contact", "efc")

    def absence(self, field: str) -> str | None:
        """Return the reason why an array is not shown: it is internal, or not computed."""
        if field in _INTERNAL:
            return "MuJoCo Warp uses it for its own purposes"
        return conditional_field_reason(self._mj_model, field)

    def bound(self) -> dict[str, torch.Tensor]:
        """Return the per-world tensors that have been accessed."""
        return {field: self.tensor(field) for field in self._tensors if self.is_per_world(field)}


class ModelFields(WarpFields):
    """The model, including MuJoCo's fields that Warp does not need; without options."""

    kind = "model"
    batched = "*"
    nested = ("opt",)

    _stale: frozenset[str] = frozenset()

    def forget(self, fields: Collection[str]) -> None:
        """Hide fields whose compiled values may no longer be valid."""
        self._stale = frozenset(fields)
        for field in self._stale:
            self._tensors.pop(field, None)

    def absence(self, field: str) -> str | None:
        """Return the reason why an array is not shown: it may be outdated."""
        if field not in self._stale:
            return None
        return (
            "mj_setConst computes it, but MuJoCo Warp does not do so for each world; after "
            "recompute_constants its compiled value may be wrong; use engine='native'"
        )

    def view(self, field: str, tensor: torch.Tensor | None) -> torch.Tensor | None:
        """Return an array with a leading dimension for worlds; MuJoCo's, if Warp has none."""
        if tensor is None:
            # Colors, groups and similar fields do not affect physics, but users read them.
            value = getattr(self._mj_model, field, None)
            if not isinstance(value, np.ndarray):
                return None
            tensor = as_tensor(value, value.shape, torch.device(self._device))
        if not self.is_per_world(field):
            tensor = tensor[None]
        return tensor


class OptionFields(WarpFields):
    """Physics options."""

    kind = "option"
    batched = "*"
