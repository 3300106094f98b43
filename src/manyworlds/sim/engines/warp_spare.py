"""A second set of MuJoCo Warp's derived fields, for calls that must not affect every world.

MuJoCo Warp's functions compute all worlds. Results for only some worlds, or of functions that must
not change derived fields, are computed in this set and then copied.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import mujoco
import warp as wp

from manyworlds.sim.engines.warp_views import to_torch
from manyworlds.validation.worlds import Worlds

if TYPE_CHECKING:
    import mujoco_warp as mjw

# Data that MuJoCo Warp keeps from one call to the next, besides the state.
_KEPT = {
    "overflow",
    "flex_hessian_valid",
    "ntree_awake",
    "nbody_awake",
    "nv_awake",
    "tree_awake",
    "body_awake",
    "body_awake_ind",
    "dof_awake_ind",
}
# Inputs of `forward`: poses of static geoms, and samples that sensors hold.
_INPUTS = ("geom_xpos", "geom_xmat", "sensordata")


@wp.kernel
def _copy_rows(worlds: wp.array[bool], source: wp.array2d[Any], target: wp.array2d[Any]):
    world, i = wp.tid()  # type: ignore
    if worlds[world]:
        target[world, i] = source[world, i]  # type: ignore


class SpareData:
    """Data with its own derived fields that shares all other arrays with the given data.

    Args:
        data: MuJoCo Warp's data.
        state: names of the fields that a world carries from one step to the next.
    """

    def __init__(self, data: mjw.Data, state: Collection[str]) -> None:
        self._data = data
        self._worlds = wp.zeros(data.nworld, dtype=bool)
        self.fields = [
            field.name
            for field in dataclasses.fields(data)
            if getattr(field.type, "shape", ())[:1] == ("nworld",)
            and hasattr(mujoco.MjData, field.name)
            and field.name not in {*state, *_KEPT}
        ]
        """Fields of MjData that calls compute for each world."""
        own = {name: wp.clone(getattr(data, name)) for name in self.fields}
        self.data = dataclasses.replace(data, **own)
        # The separate counter prevents a reset from clearing contacts, which all worlds share.
        self.without_contacts = dataclasses.replace(self.data, nacon=wp.zeros(1, dtype=int))
        self.share(self.fields)  # for no world; builds kernels, which a capture cannot do

    def name_worlds(self, worlds: Worlds) -> None:
        """Select the worlds that `share` copies."""
        to_torch(self._worlds).copy_(worlds.mask)

    def take_inputs(self) -> None:
        """Copy inputs that `forward` does not change."""
        for name in _INPUTS:
            wp.copy(getattr(self.data, name), getattr(self._data, name))

    def share(self, fields: Collection[str]) -> None:
        """Copy some derived fields of the selected worlds to the data that users see."""
        for name in fields:
            source = _words(getattr(self.data, name))
            target = _words(getattr(self._data, name))
            if source.size:
                wp.launch(_copy_rows, dim=source.shape, inputs=[self._worlds, source, target])


def _words(array: wp.array) -> wp.array:
    """View the rows of an array as plain numbers."""
    kind = wp.uint8 if array.dtype is wp.bool else wp.uint32
    size = wp.types.type_size_in_bytes(array.dtype) // wp.types.type_size_in_bytes(kind)
    shape = (array.shape[0], math.prod(array.shape[1:]) * size)
    return wp.array(ptr=array.ptr, shape=shape, dtype=kind, device=array.device)
