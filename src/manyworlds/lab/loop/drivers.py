"""Drivers, which advance the world: physics, or a source of states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import mujoco
import numpy as np

if TYPE_CHECKING:
    from manyworlds.lab.loop.physics_loop import PhysicsLoop

ENVIRONMENT = "environment"
"""Name of the driver that steps a task's environment."""
PHYSICS = ("physics", ENVIRONMENT)
"""Names of the drivers that integrate physics."""

TaskSettings = tuple[dict[str, tuple[float, ...]], bool]
"""Commands of a task that users hold at values, by name; and whether ends of episodes reset it."""


class Driver(Protocol):
    """Object that advances a world by one step."""

    name: str
    """Name of the driver: `physics`, `puppet`, `replay` ..."""

    def step(self, model: mujoco.MjModel, data: mujoco.MjData) -> bool:
        """Advance the world; return True if it did. Runs in the physics thread."""
        ...


@runtime_checkable
class DriverWithMemory(Protocol):
    """Driver that saved states must include, so that a restored world continues exactly."""

    def memory(self) -> bytes:
        """Return what the driver remembers."""
        ...

    def recall(self, memory: bytes, model: mujoco.MjModel) -> None:
        """Continue from what `memory` returned. Runs in the physics thread."""
        ...

    def settings(self) -> TaskSettings:
        """Return what users have set, to compare and to keep."""
        ...

    def put_settings(self, settings: TaskSettings, /) -> None:
        """Set what `settings` returned. Runs in the physics thread."""
        ...


class Physics:
    """`mj_step`."""

    name = "physics"

    def step(self, model: mujoco.MjModel, data: mujoco.MjData) -> bool:
        """Advance the world by one timestep."""
        mujoco.mj_step(model, data)
        return True


class Puppet:
    """Shows externally supplied states instead of stepping physics.

    A state may come from any thread; the newest one is shown.
    """

    name = "puppet"

    def __init__(self) -> None:
        self._next: dict[str, np.ndarray | float] | None = None

    def show(self, **fields: np.ndarray | float) -> None:
        """Set the state to show at the next step: `time`, `qpos`, `qvel`, `act`, `ctrl` ...

        Raises:
            ValueError: a state has no field of a given name.
        """
        allowed = ("time", "qpos", "qvel", "act", "ctrl", "mocap_pos", "mocap_quat")
        if unknown := set(fields) - set(allowed):
            raise ValueError(
                f"A state has no {', '.join(sorted(unknown))}: choose from {', '.join(allowed)}."
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
    """Driver on the stack, and the client that added it."""

    driver: Driver
    owner: str


class DriverStack:
    """Stack of drivers above physics; the topmost one advances the world.

    Drivers are removed in any order, so that a replay that ends while another driver is above it
    does not interrupt that driver.
    """

    def __init__(self) -> None:
        self._stack = [Drive(Physics(), "engine")]
        self.with_memory: DriverWithMemory | None = None
        """The driver that saved states include, on top of the stack or not; None without one."""

    @property
    def top(self) -> Drive:
        """The driver that advances the world."""
        return self._stack[-1]

    def push(self, driver: Driver, owner: str) -> Drive:
        """Add a driver, which then advances the world.

        Raises:
            RuntimeError: it is on the stack already.
        """
        for drive in self._stack:
            if drive.driver is driver:
                raise RuntimeError(
                    f"The driver '{driver.name}' already advances this world, for '{drive.owner}': "
                    "remove it first."
                )
        drive = Drive(driver, owner)
        self._set([*self._stack, drive])
        return drive

    def remove(self, drive: Drive) -> None:
        """Remove a driver; does nothing if it is not on the stack."""
        self._set([other for other in self._stack if other is not drive])

    def _set(self, stack: list[Drive]) -> None:
        drivers = (drive.driver for drive in stack)
        memories = (driver for driver in drivers if isinstance(driver, DriverWithMemory))
        self._stack, self.with_memory = stack, next(memories, None)


def why_still(loop: PhysicsLoop) -> list[str]:
    """Return the reasons that keep all robots from moving, as text."""
    reasons = [loop.fault] if loop.fault else []
    if loop.paused:
        reasons.append("the world is paused")
    if loop.mode == "direct":
        reasons.append("the world waits for steps (direct mode)")
    if (top := loop.drivers.top).driver.name not in PHYSICS:
        reasons.append(f"'{top.owner}' replaces physics ({top.driver.name})")
    if loop.model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_ACTUATION:
        reasons.append("actuation is switched off in the options")
    return reasons
