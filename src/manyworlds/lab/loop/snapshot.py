"""Snapshots: immutable copies of a world, one per iteration, for all readers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import mujoco
import numpy as np

_STATE = ("qpos", "qvel", "qacc", "act", "ctrl", "xfrc_applied", "mocap_pos", "mocap_quat")
FIELDS = (
    *_STATE,
    "actuator_force",
    "sensordata",
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
    stepper: str
    """Name of the stepper that advanced the world: `physics`, `puppet`, `replay` ..."""
    fault: str
    """Reason why the world stopped; empty if it can advance."""
    warnings: Mapping[str, int]
    """Number of MuJoCo's warnings since the last reset, by type (`contactfull` ...)."""
    model_version: int
    """Number of changes of the model; copies of the model from another version are outdated."""
    block: np.ndarray
    """All fields, one after the other, float64."""
    layout: Layout

    @property
    def driver(self) -> str:
        """Former name of `stepper`."""
        return self.stepper

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
        # Views of the data's memory; one call copies all of them.
        self._sources = [source.reshape(-1) for source in sources]
        self._warmstart = data.qacc_warmstart
        self._num_state = ends[len(_STATE)]

    def take(self) -> np.ndarray:
        """Copy all present fields into a new block of memory, shape [num_values]."""
        block = np.concatenate(self._sources)
        block.flags.writeable = False
        return block

    def is_finite(self, block: np.ndarray) -> bool:
        """Return True if all numbers of the state in a block are finite, and none is huge."""
        state = block[: self._num_state]
        return math.isfinite(np.vdot(state, state))  # overflows to inf without a warning

    def put_back(self, block: np.ndarray) -> None:
        """Write the fields of a block that `take` returned into the data."""
        np.nan_to_num(self._warmstart, copy=False)  # no field, but part of a state
        for source, (place, _) in zip(self._sources, self.layout.values(), strict=True):
            np.copyto(source, block[place])
