"""Requests and results of ray casting and camera rendering in many worlds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import mujoco
import numpy as np
import torch

from manyworlds.validation.checks import check_type


class Rays(NamedTuple):
    """First hit of each ray, float32 and int32, one row per world."""

    dist: torch.Tensor
    """Distance from the origin, in lengths of the direction; -1 for a miss. Shape (n, nray)."""
    geomid: torch.Tensor
    """Id of the geom that was hit; -1 for a miss. Shape (n, nray)."""
    normal: torch.Tensor
    """Surface normal at the hit in the world frame; zero for a miss. Shape (n, nray, 3)."""

    def within_(self, cutoff: float) -> Rays:
        """Mark hits beyond `cutoff`, in lengths of the direction, as misses, in place."""
        miss = self.dist > cutoff
        self.dist.masked_fill_(miss, -1.0)
        self.geomid.masked_fill_(miss, -1)
        self.normal.masked_fill_(miss[..., None], 0.0)
        return self


@dataclass(frozen=True, kw_only=True)
class CameraRequest:
    """Camera to render, and rendering options."""

    camera: int
    """Id of the camera."""
    width: int
    height: int
    kinds: tuple[str, ...]
    """Kinds of images: any of rgb, depth and segmentation."""
    textures: bool = True
    shadows: bool = False
    geom_groups: tuple[int, ...] = (0, 1, 2)


class DoubleBuffers:
    """Float64 copies of tensors in reused memory, since allocation costs more than the copy."""

    def __init__(self) -> None:
        self._memory: dict[str, np.ndarray] = {}

    def copy(self, name: str, tensor: torch.Tensor) -> np.ndarray:
        """Copy a tensor into the buffer of this name, which the next such copy overwrites.

        Returns:
            The buffer, float64, with the tensor's shape.
        """
        memory = self._memory.get(name)
        if memory is None or memory.size < tensor.numel():
            memory = self._memory[name] = np.empty(tensor.numel())
        array = memory[: tensor.numel()].reshape(tensor.shape)
        np.copyto(array, tensor.numpy())
        return array


def check_rays(
    pnt: torch.Tensor,
    vec: torch.Tensor,
    geomgroup: Sequence[int] | None,
    num_worlds: int,
    device: torch.device,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return origins and directions with shape (num_worlds, nray, 3).

    Raises:
        TypeError: they are not tensors.
        ValueError: their shapes do not fit, they are on another device than the worlds, or
            `geomgroup` does not have one flag per group.
    """
    for name, rays in (("pnt", pnt), ("vec", vec)):
        check_type(name, rays, torch.Tensor, "use torch.as_tensor.")
        if rays.device != device:
            raise ValueError(
                f"{name} is on device '{rays.device}', but the worlds are on '{device}': move it "
                "there with .to(sim.device)."
            )
    try:
        # torch.broadcast_shapes takes longer than the rest of a call on few rays.
        shape = np.broadcast_shapes(pnt.shape, vec.shape, (num_worlds, 1, 3))
    except ValueError:
        shape = ()
    if len(shape) != 3 or (shape[0], shape[2]) != (num_worlds, 3):
        raise ValueError(
            f"Rays need pnt and vec of shape (nray, 3) or ({num_worlds}, nray, 3), "
            f"got {tuple(pnt.shape)} and {tuple(vec.shape)}: give one row per world and ray."
        )
    if geomgroup is not None and len(geomgroup) != mujoco.mjNGROUP:
        raise ValueError(
            f"geomgroup needs {mujoco.mjNGROUP} flags, one per group, got {len(geomgroup)}: "
            "give 1 for each group that rays can hit, else 0."
        )
    return pnt.expand(shape), vec.expand(shape)
