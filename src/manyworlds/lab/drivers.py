"""Who moves a world on: physics, or somebody who shows states of his own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import mujoco
import numpy as np


class Driver(Protocol):
    """Moves a world on by one step."""

    name: str
    """What it is called: `physics`, `puppet`, `replay` ..."""

    def step(self, model: mujoco.MjModel, data: mujoco.MjData) -> bool:
        """Move the world on; return whether it moved. Runs in the physics thread."""
        ...


class Physics:
    """`mj_step`."""

    name = "physics"

    def step(self, model: mujoco.MjModel, data: mujoco.MjData) -> bool:
        """Move the world on by a timestep."""
        mujoco.mj_step(model, data)
        return True


class Puppet:
    """Shows the states that it is given, and integrates nothing.

    A state may come from any thread; the newest counts.
    """

    name = "puppet"

    def __init__(self) -> None:
        self._next: dict[str, np.ndarray | float] | None = None

    def show(self, **fields: np.ndarray | float) -> None:
        """Show a state at the next step: `time`, `qpos`, `qvel`, `act`, `ctrl`, `mocap_pos` ...

        Raises:
            ValueError: the world has no such state.
        """
        allowed = ("time", "qpos", "qvel", "act", "ctrl", "mocap_pos", "mocap_quat")
        if unknown := set(fields) - set(allowed):
            raise ValueError(
                f"A state has no {', '.join(sorted(unknown))}: it has {', '.join(allowed)}."
            )
        self._next = {
            name: float(value) if name == "time" else np.array(value, float)  # type: ignore[arg-type]
            for name, value in fields.items()
        }

    def step(self, model: mujoco.MjModel, data: mujoco.MjData) -> bool:
        """Show the newest state, if there is one that was not shown yet."""
        fields, self._next = self._next, None
        if fields is None:
            return False
        for name, value in fields.items():
            if name == "time":
                data.time = value
            else:
                getattr(data, name)[:] = value
        mujoco.mj_forward(model, data)
        return True


@dataclass(frozen=True)
class Drive:
    """A driver on the stack, and who put it there."""

    driver: Driver
    owner: str


class DriverStack:
    """Drivers on top of physics; the topmost moves the world on.

    Each is taken off by the one who put it there, in any order, so that a replay that ends inside
    another's turn gives the world back to whoever had it.
    """

    def __init__(self) -> None:
        self._stack = [Drive(Physics(), "engine")]

    @property
    def top(self) -> Drive:
        """Who moves the world on."""
        return self._stack[-1]

    def push(self, driver: Driver, owner: str) -> Drive:
        """Let a driver move the world on.

        Raises:
            RuntimeError: it is on the stack already.
        """
        for drive in self._stack:
            if drive.driver is driver:
                raise RuntimeError(
                    f"The driver '{driver.name}' already moves this world, for '{drive.owner}': "
                    "take it off the stack first."
                )
        drive = Drive(driver, owner)
        self._stack.append(drive)
        return drive

    def remove(self, drive: Drive) -> None:
        """Take a driver off the stack; one that is not there is no matter."""
        self._stack = [other for other in self._stack if other is not drive]
