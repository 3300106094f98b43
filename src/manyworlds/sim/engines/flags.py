"""Flags of each world that only `mj_setConst` writes, on the native engine.

MuJoCo skips gravity compensation, adhesion and surface velocities in a model in which none was
nonzero when constants were last computed, and sizes buffers by the meshes in use at that time. The
batch keeps these scalars for each world and shows them to nobody. What can be kept is their source:
the rows that they were computed from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

FLAG_SOURCES = (
    "body_gravcomp",
    "geom_adhesion",
    "geom_dataid",
    "geom_surfacevel",
    "geom_type",
    "pair_adhesion",
)
"""Model fields that the flags are computed from."""


class Flags:
    """The rows that each world's flags were computed from, and those that they should be of.

    Args:
        num_envs: the number of worlds.
        set_const: computes the constants of worlds from their rows, given their ids.
    """

    def __init__(self, num_envs: int, set_const: Callable[[np.ndarray], object]) -> None:
        self._num_envs = num_envs
        self._set_const = set_const
        self.wanted: dict[str, np.ndarray] = {}
        """By expanded field of `FLAG_SOURCES`, shape (num_envs, ...); write, then `apply`."""
        self._applied: dict[str, np.ndarray] = {}

    def add(self, field: str, rows: np.ndarray) -> None:
        """Add a field that now has rows, with which the flags were computed so far."""
        self.wanted[field] = rows.copy()
        self._applied[field] = rows.copy()

    def note(self, rows: Mapping[str, np.ndarray], worlds: np.ndarray | slice) -> None:
        """Note that the flags of some worlds have been computed from the present rows."""
        for field, wanted in self.wanted.items():
            wanted[worlds] = rows[field][worlds]
            self._applied[field][worlds] = rows[field][worlds]

    def outdated(self) -> np.ndarray:
        """Return the ids of the worlds whose flags are not of the rows that are wanted."""
        differs = np.zeros(self._num_envs, bool)
        for field, wanted in self.wanted.items():
            other = wanted != self._applied[field]
            differs |= other.reshape(len(other), -1).any(axis=1)
        return np.flatnonzero(differs)

    def apply(
        self,
        worlds: np.ndarray,
        rows: Mapping[str, np.ndarray],
        compiled: Mapping[str, np.ndarray],
    ) -> None:
        """Compute the flags of some worlds from the rows that are wanted.

        The batch may give other fields rows with what it computes from these.

        Args:
            worlds: ids of the worlds, ascending.
            rows: the batch's rows of all expanded model fields, the same afterwards.
            compiled: the compiled values of these fields.
        """
        kept = {field: array[worlds] for field, array in rows.items()}
        for field, array in rows.items():
            if field in self.wanted:
                array[worlds] = self.wanted[field][worlds]
            else:
                array[worlds] = compiled[field]
        self._set_const(worlds.astype(np.int32))
        for field, array in rows.items():
            array[worlds] = kept[field]
        for field, wanted in self.wanted.items():
            self._applied[field][worlds] = wanted[worlds]
