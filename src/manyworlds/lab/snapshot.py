"""Snapshots: immutable copies of a world, one per iteration, for all readers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import mujoco
import numpy as np

FIELDS = (
    "qpos",
    "qvel",
    "qacc",
    "act",
    "ctrl",
    "actuator_force",
    "sensordata",
    "xfrc_applied",
    "mocap_pos",
    "mocap_quat",
    "xpos",
    "xquat",
    "geom_xpos",
    "geom_xmat",
    "site_xpos",
    "site_xmat",
    "cam_xpos",
    "cam_xmat",
    "light_xpos",
    "light_xdir",
    "ten_length",
)
"""Fields of `mujoco.MjData` that a snapshot has, in float64."""


Layout = Mapping[str, tuple[slice, tuple[int, ...]]]
"""Place of each field in a snapshot's block of memory, and its shape."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """State of a world after one iteration of the loop.

    The fields of `FIELDS` are attributes: `snapshot.qpos`. All arrays are of the same moment and
    read-only.
    """

    frame_id: int
    """Number of the iteration."""
    step: int
    """Number of physics steps since the loop was created."""
    time: float
    """Simulated time [s]."""
    paused: bool
    mode: str
    """`live`, or `direct` if the world advances by calls of `step` only."""
    driver: str
    """Name of the driver that advanced the world: `physics`, `puppet`, `replay` ..."""
    block: np.ndarray
    """All fields, one after the other, float64."""
    layout: Layout

    def __getattr__(self, name: str) -> np.ndarray:
        """Return a field of `FIELDS`, in the shape that `mujoco.MjData` has it in."""
        if name not in FIELDS:
            raise AttributeError(f"A snapshot has no '{name}': it has {', '.join(FIELDS)}.")
        place, shape = self.layout[name]
        return self.block[place].reshape(shape)


class SnapshotTaker:
    """Copies the fields of one world's data.

    Args:
        data: the data of a compiled model.
    """

    def __init__(self, data: mujoco.MjData) -> None:
        sources: list[np.ndarray] = [getattr(data, name) for name in FIELDS]
        ends = np.cumsum([0, *(source.size for source in sources)]).tolist()
        self.layout: Layout = {
            name: (slice(start, end), source.shape)
            for name, source, start, end in zip(FIELDS, sources, ends[:-1], ends[1:], strict=True)
        }
        self._staged = np.empty(ends[-1])
        self._copies = [
            (self._staged[place].reshape(shape), source)
            for (place, shape), source in zip(self.layout.values(), sources, strict=True)
            if source.size
        ]

    def take(self) -> np.ndarray:
        """Copy all present fields into a new block of memory, shape [num_values]."""
        for copy, source in self._copies:
            np.copyto(copy, source)
        block = self._staged.copy()
        block.flags.writeable = False
        return block
