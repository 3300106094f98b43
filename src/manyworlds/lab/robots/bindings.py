"""Bindings of inputs, such as keys and sticks, to actuators."""

from __future__ import annotations

import math
import re
import weakref
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, get_args

from manyworlds.lab.errors import near
from manyworlds.lab.robots.control import PANEL, RobotControl

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

BindingMode = Literal["hold", "toggle", "accumulate"]
"""`hold`: the target follows the input; `toggle`: each press switches it on or off;
`accumulate`: the target moves while the input is held, and stays."""

_INPUT = re.compile(
    r"Key[A-Z]|Digit\d|Space|Arrow(Up|Down|Left|Right)|Button([12]?\d|3[01])|Axis(\d|1[0-5])"
)
_INPUTS = "KeyA to KeyZ, Digit0 to Digit9, Space, ArrowUp, Button0 to Button31, Axis0 to Axis15"
_DRIVING = tuple(f"Key{letter}" for letter in "WASDQE")
_PRESSED = 0.5  # value from which a button counts as pressed


@dataclass(frozen=True)
class InputBinding:
    """Input that moves an actuator of a robot while the robot is driven."""

    input: str
    """Key by its place on an American keyboard (`KeyG`, `Digit1`, `Space`, `ArrowUp`), or button
    or axis of a gamepad (`Button0`, `Axis2`)."""
    actuator: str
    """Name of the actuator, without the robot's prefix."""
    scale: float = 1.0
    """Change of the target at an input of 1, from the neutral target and in the actuator's unit;
    per second for `accumulate`."""
    mode: BindingMode = "hold"
    robot: str = ""
    """Name of the robot; the only one if empty."""


class Bindings:
    """Table of the bindings of a lab's robots.

    Args:
        lab: the lab.
    """

    def __init__(self, lab: LiveLab) -> None:
        self._lab: LiveLab = weakref.proxy(lab)  # a cycle would keep the lab's memory
        self._table: tuple[InputBinding, ...] = ()
        self._on: set[InputBinding] = set()  # toggled
        self._values: dict[str, Mapping[str, float]] = {}
        lab.on_reset(self._on.clear)
        lab.on_rebuild(self._drop_missing)

    @property
    def table(self) -> tuple[InputBinding, ...]:
        """All bindings, in the order in which they were made."""
        return self._table

    def of(self, robot: str) -> list[InputBinding]:
        """Return the bindings of a robot."""
        return [binding for binding in self._table if binding.robot == robot]

    def bind(
        self,
        input: str,
        actuator: str,
        scale: float = 1.0,
        mode: BindingMode = "hold",
        robot: str = "",
    ) -> InputBinding:
        """Bind an input to an actuator, in place of an earlier binding of the two.

        Args:
            input: see `InputBinding`.
            actuator: see `InputBinding`.
            scale: see `InputBinding`.
            mode: see `BindingMode`.
            robot: see `InputBinding`.

        Raises:
            KeyError: there is no such robot or actuator.
            ValueError: the input, the scale or the mode is invalid, or there are several robots
                and none is named.
        """
        if not _INPUT.fullmatch(input):
            raise ValueError(f"There is no input '{input}': use {_INPUTS}.")
        if input in _DRIVING:
            raise ValueError(
                f"The key '{input}' gives the velocity, as all of {', '.join(_DRIVING)}: bind "
                "another input."
            )
        if mode not in get_args(BindingMode):
            modes = ", ".join(get_args(BindingMode))
            raise ValueError(f"The mode of a binding is one of {modes}, got '{mode}'.")
        if not math.isfinite(scale):
            raise ValueError(f"The scale of the binding of '{input}' must be finite, got {scale}.")
        control = self._lab.only_robot(robot)
        names = control.actuators.names
        if actuator not in names:
            hint = near(actuator, names, f"; it has {', '.join(names) or 'none'}.")
            raise KeyError(f"'{control.name}' has no actuator '{actuator}'{hint}")
        fresh = InputBinding(input, actuator, float(scale), mode, control.name)
        key = _key(fresh)
        self._table = (*(known for known in self._table if _key(known) != key), fresh)
        return fresh

    def unbind(self, input: str, actuator: str = "", robot: str = "") -> int:
        """Remove the bindings of an input.

        Args:
            input: the input.
            actuator: only of this actuator; empty for all.
            robot: only of this robot; empty for all.

        Returns:
            The number of bindings that were removed.

        Raises:
            KeyError: there is no such binding.
        """
        gone = [
            known
            for known in self._table
            if known.input == input
            and actuator in ("", known.actuator)
            and robot in ("", known.robot)
        ]
        if not gone:
            bound = ", ".join(dict.fromkeys(known.input for known in self._table)) or "none"
            raise KeyError(f"'{input}' is not bound to that; inputs that are bound: {bound}.")
        self._table = tuple(known for known in self._table if known not in gone)
        self._on.difference_update(gone)
        return len(gone)

    def clear(self) -> None:
        """Remove all bindings."""
        self._table = ()
        self._on.clear()

    def resume(self, control: RobotControl, values: Mapping[str, float]) -> None:
        """Continue from a moment at which inputs had other values.

        Args:
            control: controls of the robot.
            values: values of the inputs at that moment, which its targets are of.
        """
        self._values[control.name] = dict(values)

    def apply(self, control: RobotControl, values: Mapping[str, float], elapsed: float) -> None:
        """Move the targets of a driven robot; runs in the physics thread.

        Args:
            control: controls of the robot.
            values: present values of the inputs, in [-1, 1]; those that are missing are 0.
            elapsed: simulated time since the last call [s].
        """
        before = self._values.get(control.name, {})
        self._values[control.name] = dict(values)
        bindings = self.of(control.name)
        changed = set()
        targets: dict[str, float] = {}
        for binding in bindings:
            value = values.get(binding.input, 0.0)
            last = before.get(binding.input, 0.0)
            if binding.mode == "accumulate":
                if value and elapsed > 0.0:
                    place = control.actuators.names.index(binding.actuator)
                    present = targets.get(binding.actuator, float(control.command.targets[place]))
                    targets[binding.actuator] = present + binding.scale * value * elapsed
            elif binding.mode == "hold" and value != last:
                changed.add(binding.actuator)
            elif binding.mode == "toggle" and abs(value) >= _PRESSED > abs(last):
                self._on ^= {binding}
                changed.add(binding.actuator)
        for actuator in changed:
            place = control.actuators.names.index(actuator)
            targets[actuator] = float(control.neutral[place])
            for binding in bindings:
                if binding.actuator == actuator:
                    targets[actuator] += binding.scale * self._share(binding, values)
        if targets:
            control.write(PANEL, self._within_range(control, targets))

    def _share(self, binding: InputBinding, values: Mapping[str, float]) -> float:
        """Return the share of a binding's scale by which the target is off the neutral one."""
        if binding.mode == "hold":
            return values.get(binding.input, 0.0)
        return float(binding in self._on)

    def _within_range(
        self, control: RobotControl, targets: Mapping[str, float]
    ) -> dict[str, float]:
        model = self._lab.loop.model
        within = {}
        for name, target in targets.items():
            row = control.actuators.ids[control.actuators.names.index(name)]
            low, high = model.actuator_ctrlrange[row].tolist()
            if low < high:
                target = min(max(target, low), high)
            within[name] = target
        return within

    def _drop_missing(self) -> None:
        """Remove the bindings of what a rebuilt world lacks, and say so."""
        lost = []
        for binding in self._table:
            control = self._lab.controls.find(binding.robot)
            if control is None or binding.actuator not in control.actuators.names:
                lost.append(binding)
        self._table = tuple(known for known in self._table if known not in lost)
        self._on.difference_update(lost)
        self._lab.rebuild_notes += tuple(
            f"the binding of {known.input} ended: '{known.robot}' has no '{known.actuator}' now"
            for known in lost
        )


def plain_bindings(bindings: Bindings) -> list[dict[str, object]]:
    """Return all bindings as plain data."""
    return [asdict(binding) for binding in bindings.table]


def _key(binding: InputBinding) -> tuple[str, str, str]:
    return binding.input, binding.actuator, binding.robot
