"""Contacts of many worlds as flat tensors."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
import torch

# Shape of each field of one contact; the names are MuJoCo's, on both engines.
_INTEGERS = {"geom": (2,), "flex": (2,), "elem": (2,), "vert": (2,), "dim": ()}
_FLOATS = {"pos": (3,), "frame": (3, 3), "dist": (), "friction": (5,)}
CONTACT_FIELDS = (*_INTEGERS, *_FLOATS)


@dataclass(frozen=True, kw_only=True)
class Contacts:
    """All contacts of some worlds, ordered by world, then as the engine stores them.

    Integer fields are int32, the others float32. `ncon`, the number of contacts, is
    `len(contacts)`.
    """

    world: torch.Tensor
    """World of each contact, shape (ncon,)."""
    geom: torch.Tensor
    """Ids of the two geoms; -1 for a flex. Shape (ncon, 2)."""
    flex: torch.Tensor
    """Ids of the two flexes; -1 for a geom. Shape (ncon, 2)."""
    elem: torch.Tensor
    """Ids of the flexes' elements; -1 for a geom or a vertex. Shape (ncon, 2)."""
    vert: torch.Tensor
    """Ids of the flexes' vertices; -1 for a geom or an element. Shape (ncon, 2)."""
    dim: torch.Tensor
    """Dimensions of the contact space: 1, 3, 4 or 6. Shape (ncon,)."""
    pos: torch.Tensor
    """Point midway between the two surfaces, in the world frame [m], shape (ncon, 3)."""
    frame: torch.Tensor
    """Axes as rows: the normal, from the first geom to the second, and two tangents.

    Shape (ncon, 3, 3).
    """
    dist: torch.Tensor
    """Distance between the surfaces [m]; negative in penetration. Shape (ncon,)."""
    friction: torch.Tensor
    """Friction coefficients: two tangential, one torsional, two rolling. Shape (ncon, 5)."""
    force: torch.Tensor
    """Force [N] and torque [N m] in the contact frame, as `mj_contactForce` computes them.

    Zero for contacts in the gap, which add no constraint. Shape (ncon, 6).
    """

    def __len__(self) -> int:
        return len(self.world)


class ContactReader:
    """Collects the contacts of one `MjData` after another."""

    def __init__(self) -> None:
        self._worlds: list[int] = []
        self._parts: dict[str, list[np.ndarray]] = {name: [] for name in (*CONTACT_FIELDS, "force")}

    def read(self, world: int, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Copy the contacts of `data`, the state of the given world."""
        if not data.ncon:
            return
        self._worlds += [world] * data.ncon
        contact = data.contact
        for name in CONTACT_FIELDS:
            self._parts[name].append(getattr(contact, name).copy())
        forces = np.empty((data.ncon, 6))
        for contact, force in enumerate(forces):
            mujoco.mj_contactForce(model, data, contact, force)
        self._parts["force"].append(forces)

    def contacts(self) -> Contacts:
        """Return the contacts that were read."""
        tensors = {"world": _flat([np.array(self._worlds)], (), np.int32)}
        for name, shape in _INTEGERS.items():
            tensors[name] = _flat(self._parts[name], shape, np.int32)
        for name, shape in {**_FLOATS, "force": (6,)}.items():
            tensors[name] = _flat(self._parts[name], shape, np.float32)
        return Contacts(**tensors)


def _flat(parts: list[np.ndarray], shape: tuple[int, ...], dtype: type) -> torch.Tensor:
    rows = [part.reshape(-1, *shape) for part in parts] or [np.empty((0, *shape))]
    with np.errstate(over="ignore"):  # diverged values become infinite in float32
        return torch.from_numpy(np.concatenate(rows).astype(dtype))
