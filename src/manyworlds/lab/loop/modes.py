"""Modes of a world: it advances by itself, by steps, or shows the states of a client."""

from __future__ import annotations

from typing import Literal

import numpy as np

from manyworlds.lab.loop.physics_loop import PhysicsLoop
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.loop.steppers import Puppet, StackedStepper

WorldMode = Literal["live", "direct", "puppet"]
"""`live` and `direct` as for the loop; `puppet` shows states that a client sends."""


class Modes:
    """Mode of one world, and the stepper that its mode `puppet` needs.

    Args:
        loop: loop of the world.
    """

    def __init__(self, loop: PhysicsLoop) -> None:
        self._loop = loop
        self._puppet = Puppet()
        self._stacked: StackedStepper | None = None

    @property
    def mode(self) -> WorldMode:
        """The present mode."""
        return self._loop.mode if self._stacked is None else "puppet"

    def set(self, mode: WorldMode | Literal["auto"]) -> None:
        """Change the mode.

        Raises:
            RuntimeError: the mode is locked.
        """
        if mode == "auto":
            mode = "live"
        if mode == self.mode:
            return
        if self._loop.mode_locked:
            raise RuntimeError(
                f"The mode is locked to '{self.mode}' (LabCfg.mode_lock): it cannot be '{mode}'."
            )
        self._loop.mode = "direct" if mode == "puppet" else mode
        if self._stacked is not None:
            self._loop.remove_stepper(self._stacked)
            self._stacked = None
        if mode == "puppet":
            self._puppet = Puppet()
            self._stacked = self._loop.push_stepper(self._puppet, "net")

    def show(self, **fields: np.ndarray | float) -> Snapshot:
        """Show a state in the mode `puppet`, and return its snapshot.

        Raises:
            RuntimeError: the mode is another one.
            ValueError: a field is unknown, or of another size than the world's.
        """
        if self._stacked is None:
            raise RuntimeError(f"The mode is '{self.mode}': states are shown in 'puppet' only.")
        for name, value in fields.items():
            shape = np.shape(getattr(self._loop.data, name))
            if np.shape(value) != shape:
                raise ValueError(f"{name} of this world has shape {shape}, got {np.shape(value)}.")
        self._puppet.show(**fields)
        return self._loop.step()
