"""Driving of robots by inputs that are held: keys, pads on the screen, and gamepads."""

from __future__ import annotations

import dataclasses
import math
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.lab.loop.callbacks import Handle
from manyworlds.lab.robots.bindings import Bindings
from manyworlds.lab.robots.control import RobotControl
from manyworlds.lab.robots.twist import read_twist, write_twist

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

HOLD_S = 0.5
"""Time after which inputs that are not renewed end, in real time [s]."""
FASTEST = (0.8, 0.5, 1.57)
"""Speeds at full input: forward and left [m/s], yaw [rad/s]."""
LIMITS = (2.0, 1.0, 3.14)
"""Largest speeds that can be set."""
_AXES = ("forward", "left", "yaw")
_STILL = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class DriverInputs:
    """Inputs of the driver of a robot."""

    driver: str
    """Name of the driver, such as that of a browser."""
    until: float = dataclasses.field(compare=False)
    """Time of `Driving.clock` at which they end [s]."""
    twist: tuple[float, ...] = _STILL
    """Velocity command: forward and left [m/s], yaw rate [rad/s]; ROS's signs."""
    values: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Values of inputs in [-1, 1] by name, for bindings."""


class Driving:
    """Drives robots: velocities to what controls them, and values to actuators by `bindings`.

    Inputs end 0.5 s after they were last renewed, whatever became of their driver: the robot gets
    a velocity of zero, and held bindings return to neutral targets.

    Args:
        lab: the lab.
        clock: returns the real time [s].
    """

    def __init__(self, lab: LiveLab, clock: Callable[[], float] = time.monotonic) -> None:
        self._lab: LiveLab = weakref.proxy(lab)  # a cycle would keep the lab's memory
        self.clock = clock
        self.bindings = Bindings(lab)
        """Inputs that move actuators."""
        self._fastest = FASTEST
        self._held: dict[str, DriverInputs] = {}
        self._time = 0.0
        self._listener: Handle | None = None  # while a robot is driven
        lab.timeline.after_branch = self._resume

    @property
    def fastest(self) -> tuple[float, ...]:
        """Speeds at full input: forward and left [m/s], yaw [rad/s]."""
        return self._fastest

    @fastest.setter
    def fastest(self, speeds: Sequence[float]) -> None:
        if len(speeds) != len(_AXES):
            raise ValueError(f"Give {len(_AXES)} speeds ({', '.join(_AXES)}), got {len(speeds)}.")
        for axis, speed, limit in zip(_AXES, speeds, LIMITS, strict=True):
            if not 0.0 <= speed <= limit:
                raise ValueError(f"The speed '{axis}' must be in [0, {limit:g}], got {speed}.")
        self._fastest = tuple(map(float, speeds))

    @property
    def drivers(self) -> dict[str, str]:
        """Name of the driver of each robot that is driven."""
        return {robot: inputs.driver for robot, inputs in dict(self._held).items()}

    def twist_of(self, robot: str) -> tuple[float, ...]:
        """Return the velocity that the driver of a robot asks for; for any thread.

        Returns:
            Forward and left velocity [m/s] and yaw rate [rad/s]; 0 without a driver.
        """
        inputs = self._held.get(robot)
        return _STILL if inputs is None else inputs.twist

    def drivable(self) -> dict[str, bool]:
        """Return the robots that can be driven, and whether each takes a velocity.

        The others have bindings.
        """
        takes = {robot.name: bool(read_twist(self._lab, robot)) for robot in self._lab.controls}
        return {name: on for name, on in takes.items() if on or self.bindings.of(name)}

    def drive(
        self,
        robot: str = "",
        twist: Sequence[float] = _STILL,
        values: Mapping[str, float] | None = None,
        *,
        actions: int | None = None,
        driver: str = "program",
    ) -> tuple[float, ...]:
        """Drive a robot for 0.5 s; call it again to keep on.

        Args:
            robot: name of the robot; the only one if empty.
            twist: shares of `fastest` in [-1, 1]: forward, left, counter-clockwise.
            values: values of inputs in [-1, 1], by name, for bindings.
            actions: bit mask of the actions that are on; None leaves them.
            driver: name of the driver.

        Returns:
            The velocity command: forward and left [m/s], yaw rate [rad/s].

        Raises:
            KeyError: there is no such robot.
            ValueError: a number is not in [-1, 1], or the robot can not be driven.
            RuntimeError: another driver drives it.
        """
        control = self._lab.only_robot(robot)
        if len(twist) != len(_AXES):
            raise ValueError(f"A twist has {len(_AXES)} shares, got {len(twist)}.")
        for share in (*twist, *(values or {}).values()):
            if not -1.0 <= share <= 1.0:
                raise ValueError(f"Shares and values of inputs are in [-1, 1], got {share}.")
        wanted = tuple(s * most for s, most in zip(twist, self._fastest, strict=True))

        def take(model: mujoco.MjModel, data: mujoco.MjData) -> None:
            before = self._held.get(control.name)
            if before is not None and before.driver != driver and self.clock() < before.until:
                raise RuntimeError(f"'{control.name}' is driven by {before.driver}.")
            if before is None and control.name not in self.drivable():
                raise ValueError(
                    f"Nothing that controls '{control.name}' takes a velocity, and no input is "
                    "bound to its actuators: run a policy that takes one, or bind inputs."
                )
            fresh = DriverInputs(driver, self.clock() + HOLD_S, wanted, dict(values or {}))
            self._hold(control, fresh)
            if actions is not None:
                control.actions = actions
            write_twist(self._lab, control, np.array(wanted))
            self.bindings.apply(control, fresh.values, 0.0)

        self._lab.loop.do(take, edits_model=False)
        return wanted

    def stop(self, robot: str = "", driver: str = "") -> bool:
        """End the driving of a robot: its velocity is zero, and its actions are off.

        Args:
            robot: name of the robot; the only one if empty.
            driver: only if this one drives it; empty for any.

        Returns:
            True if it was driven.

        Raises:
            KeyError: there is no such robot.
        """
        control = self._lab.only_robot(robot)

        def end(model: mujoco.MjModel, data: mujoco.MjData) -> bool:
            held = self._held.get(control.name)
            if held is None or driver not in ("", held.driver):
                return False
            self._end(control)
            return True

        return self._lab.loop.do(end, edits_model=False)

    def _hold(self, control: RobotControl, inputs: DriverInputs) -> None:
        """Hold inputs until they end."""
        self._held[control.name] = inputs
        if control.inputs != inputs:  # the timeline keeps them where they change
            control.inputs = inputs
        if self._listener is None:
            self._time = float(self._lab.loop.data.time)
            self._listener = self._lab.loop.on_pre_step(self._follow)

    def _resume(self) -> None:
        """Hold the inputs of the moment from which the world continues, unless others are held.

        They end after 0.5 s like all others, because nobody may be there who ends them.
        """
        now = self.clock()
        for control in self._lab.controls:
            then = control.inputs
            held = self._held.get(control.name)
            self.bindings.resume(control, {} if then is None else then.values)
            if held is not None:
                control.inputs = held
                write_twist(self._lab, control, np.array(held.twist))
                self.bindings.apply(control, held.values, 0.0)
            elif then is not None:
                self._hold(control, dataclasses.replace(then, until=now + HOLD_S))

    def _end(self, control: RobotControl) -> None:
        held = self._held.pop(control.name)
        control.actions = 0
        control.inputs = None
        self.bindings.apply(control, {}, 0.0)
        if any(held.twist):
            write_twist(self._lab, control, np.array(_STILL))

    def _follow(self, model: mujoco.MjModel, data: mujoco.MjData, moved: bool) -> None:
        """End inputs that are over, and move what accumulates; before each iteration's controls."""
        elapsed = data.time - self._time
        self._time = data.time
        if not self._held:
            if self._listener is not None:
                self._listener.remove()
                self._listener = None
            return
        now = self.clock()
        for name, inputs in list(self._held.items()):
            control = self._lab.controls.find(name)
            if control is None:  # the world was rebuilt
                del self._held[name]
            elif not math.isfinite(inputs.until) or now >= inputs.until:
                self._end(control)
            else:
                self.bindings.apply(control, inputs.values, max(elapsed, 0.0))
