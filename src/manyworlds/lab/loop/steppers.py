"""Steppers, which advance the world: physics, or a source of states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import mujoco
import numpy as np

if TYPE_CHECKING:
    from manyworlds.lab.loop.physics_loop import PhysicsLoop

ENVIRONMENT = "environment"
"""Name of the stepper that steps a task's environment."""
PHYSICS = ("physics", ENVIRONMENT)
"""Names of the steppers that integrate physics."""

TaskSettings = tuple[dict[str, tuple[float, ...]], bool]
"""Commands of a task that users hold at values, by name; and whether ends of episodes reset it."""


class Stepper(Protocol):
    """Object that advances a world by one step."""

    name: str
    """Name of the stepper: `physics`, `puppet`, `replay` ..."""

    def step(self, model: mujoco.MjModel, data: mujoco.MjData) -> bool:
        """Advance the world; return True if it did. Runs in the physics thread."""
        ...


Driver = Stepper
"""Former name of `Stepper`."""


@runtime_checkable
class StepperWithMemory(Protocol):
    """Stepper that saved states must include, so that a restored world continues exactly."""

    def memory(self) -> bytes:
        """Return what the stepper remembers."""
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
        self._next: dict[str, np.ndarray] | None = None

    def show(self, **fields: np.ndarray | float) -> None:
        """Set the state to show at the next step: `time`, `qpos`, `qvel`, `act`, `ctrl` ...

        Raises:
            ValueError: a state has no field of a given name.
        """
        allowed = ("time", "qpos", "qvel", "act", "ctrl", "mocap_pos", "mocap_quat")
        unknown = set(fields) - set(allowed)
        if unknown:
            raise ValueError(
                f"A state has no {', '.join(sorted(unknown))}: choose from {', '.join(allowed)}."
            )
        self._next = {name: np.array(value, float) for name, value in fields.items()}

    def step(self, model: mujoco.MjModel, data: mujoco.MjData) -> bool:
        """Show the newest state, if there is one that was not shown yet."""
        fields, self._next = self._next, None
        if fields is None:
            return False
        for name, value in fields.items():
            if name == "time":
                data.time = value.item()
            else:
                getattr(data, name)[:] = value
        mujoco.mj_forward(model, data)
        return True


@dataclass(frozen=True)
class StackedStepper:
    """Stepper on the stack, and the client that added it."""

    stepper: Stepper
    owner: str


class StepperStack:
    """Stack of steppers above physics; the topmost one advances the world.

    Steppers are removed in any order, so that a replay that ends while another stepper is above it
    does not interrupt that stepper.
    """

    def __init__(self) -> None:
        self._stack = [StackedStepper(Physics(), "engine")]
        self.with_memory: StepperWithMemory | None = None
        """The stepper that saved states include, on top of the stack or not; None without one."""

    @property
    def top(self) -> StackedStepper:
        """The stepper that advances the world."""
        return self._stack[-1]

    def push(self, stepper: Stepper, owner: str) -> StackedStepper:
        """Add a stepper, which then advances the world.

        Raises:
            RuntimeError: it is on the stack already.
        """
        for stacked in self._stack:
            if stacked.stepper is stepper:
                raise RuntimeError(
                    f"The stepper '{stepper.name}' already advances this world, for "
                    f"'{stacked.owner}': remove it first."
                )
        stacked = StackedStepper(stepper, owner)
        self._set([*self._stack, stacked])
        return stacked

    def remove(self, stacked: StackedStepper) -> None:
        """Remove a stepper; does nothing if it is not on the stack."""
        self._set([other for other in self._stack if other is not stacked])

    def _set(self, stack: list[StackedStepper]) -> None:
        steppers = (stacked.stepper for stacked in stack)
        memories = (stepper for stepper in steppers if isinstance(stepper, StepperWithMemory))
        self._stack = stack
        self.with_memory = next(memories, None)


def why_still(loop: PhysicsLoop) -> list[str]:
    """Return the reasons that keep all robots from moving, as text."""
    reasons = [loop.fault] if loop.fault else []
    if loop.paused:
        reasons.append("the world is paused")
    if loop.mode == "direct":
        reasons.append("the world waits for steps (direct mode)")
    top = loop.steppers.top
    if top.stepper.name not in PHYSICS:
        reasons.append(f"'{top.owner}' replaces physics ({top.stepper.name})")
    if loop.model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_ACTUATION:
        reasons.append("actuation is switched off in the options")
    return reasons
