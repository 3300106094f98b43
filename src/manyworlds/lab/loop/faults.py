"""Bad values that stop a world: their detection, and sentences that name their origin."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.lab.loop.controls import RobotControls
from manyworlds.lab.loop.steppers import PHYSICS

if TYPE_CHECKING:
    from manyworlds.lab.loop.commands import Command
    from manyworlds.lab.loop.steppers import StackedStepper

REMEDY = "reset the world, or restore a saved state"
_MOST = 1e6
"""Largest control, relative to the range of its actuator."""
_MOST_WITHOUT_RANGE = 1e10  # MuJoCo's mjMAXVAL, above which it ignores all controls
_LOG = logging.getLogger(__name__)
_HUGE = 1e100
_DIVERGED = {
    "badqpos": "positions",
    "badqvel": "velocities",
    "badqacc": "accelerations",
}
_MEANINGS = {
    "inertia": "the inertia matrix is too close to singular: check masses and inertias",
    "contactfull": "contacts were dropped: raise the memory of the model, <size memory>",
    "cnstrfull": "constraints were dropped: raise the memory of the model, <size memory>",
    "badqpos": "positions were not numbers",
    "badqvel": "velocities were not numbers",
    "badqacc": "accelerations were not numbers",
    "badctrl": "a control was no number, or far out of its range",
}
_KINDS = [
    name.removeprefix("mjWARN_").lower()
    for name in mujoco.mjtWarning.__members__
    if name.startswith("mjWARN_")
]


def explain_warnings(counts: Mapping[str, int]) -> list[str]:
    """Return the numbers of warnings since the last reset, by type, as text with their meaning."""
    lines = []
    for kind, count in counts.items():
        line = f"{count} {'warning' if count == 1 else 'warnings'} since the reset: {kind}"
        if kind in _MEANINGS:
            line += f" ({_MEANINGS[kind]})"
        lines.append(line)
    return lines


class FaultError(RuntimeError):
    """Error of a world that is stopped until it is reset or restored."""


def explain_failure(who: str, time: float, error: Exception) -> str:
    """Return a sentence about an error that stops a world; log it, unless it is a bad value.

    Args:
        who: what raised it: a stepper or a controller, often from outside this package.
        time: simulated time [s].
        error: the error.
    """
    text = str(error)
    if not isinstance(error, FaultError | mujoco.FatalError):
        _LOG.error("%s failed; the world is stopped.", who, exc_info=error)
        if not isinstance(error, ValueError | RuntimeError):
            text = f"{type(error).__name__}: {text}"
    return f"{who} failed at {time:.3f} s: {text}"


class WarningCounter:
    """Counts MuJoCo's warnings, which MuJoCo itself forgets when it resets bad data.

    Args:
        data: data whose warnings are counted.
    """

    def __init__(self, data: mujoco.MjData) -> None:
        self.counts: dict[str, int] = {}
        """Number of warnings by type (`contactfull` ...); replaced as a whole, never modified."""
        self._numbers = data.warning.number
        self._seen = self._numbers.tobytes()

    def clear(self) -> None:
        """Start at zero, after a reset of the data."""
        self.counts = {}
        self._seen = self._numbers.tobytes()

    def add(self, kind: str, number: int = 1) -> None:
        """Count warnings."""
        self.counts = {**self.counts, kind: self.counts.get(kind, 0) + number}

    def update(self) -> list[str]:
        """Count new warnings; return their types."""
        now = self._numbers.tobytes()
        if now == self._seen:
            return []
        before = np.frombuffer(self._seen, self._numbers.dtype)
        self._seen = now
        found = []
        for kind, number, old in zip(_KINDS, self._numbers.tolist(), before.tolist(), strict=True):
            reset = number < old
            new = number if reset else number - old
            if new > 0:
                self.add(kind, new)
                found.append(kind)
        return found


class ControlLimits:
    """Largest controls that actuators take.

    Args:
        model: the model.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        self.read(model)

    def read(self, model: mujoco.MjModel) -> None:
        """Take the limits of a model whose ranges were changed."""
        limited = model.actuator_ctrllimited.astype(bool)
        reach = _MOST * np.abs(model.actuator_ctrlrange).max(axis=1, initial=0.0)
        self._most = np.where(limited & (reach > 0.0), reach, _MOST_WITHOUT_RANGE)
        self._inverse = 1.0 / self._most

    def find_bad(self, model: mujoco.MjModel, data: mujoco.MjData, controls: RobotControls) -> str:
        """Return a sentence about the first bad control; empty if there is none."""
        ratios = data.ctrl * self._inverse
        # Faster than a comparison of each control; `vdot` overflows to inf without a warning.
        if np.vdot(ratios, ratios) <= 1.0:
            return ""
        good = np.abs(data.ctrl) <= self._most  # False for nan, too
        if good.all():
            return ""
        index = int(np.flatnonzero(~good)[0])
        low, high = model.actuator_ctrlrange[index].tolist()
        bound = f"within {_MOST:g} times the range [{low:g}, {high:g}]"
        if self._most[index] == _MOST_WITHOUT_RANGE:
            bound = f"within {_MOST_WITHOUT_RANGE:g}"
        return (
            f"{_source(model, index, controls)} is {data.ctrl[index]:g} at {data.time:.3f} s and "
            f"must be a number {bound}: correct its source, then {REMEDY}."
        )


def _source(model: mujoco.MjModel, control: int, controls: RobotControls) -> str:
    """Return the name of a control, its robot, and the writer."""
    for robot in controls:
        ids = robot.actuators.ids.tolist()
        if control in ids:
            name = robot.actuators.names[ids.index(control)]
            law = f"from the controller '{robot.controller.name}' and the owner '{robot.owner}'"
            if not robot.enabled:
                law = f"from the owner '{robot.owner}'"
            return f"The control of actuator '{name}' of '{robot.name}', {law},"
    return f"The control of actuator '{_actuator(model, control)}', which belongs to no robot,"


def find_divergence(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    kinds: list[str],
    time: float,
    stacked: StackedStepper,
) -> str:
    """Return a sentence about the divergence that MuJoCo warned of; empty if it did not.

    Args:
        model: the model.
        data: the data, which MuJoCo has reset.
        kinds: types of the new warnings.
        time: time before the step [s].
        stacked: what made the step.
    """
    kind = next((kind for kind in _DIVERGED if kind in kinds), None)
    if kind is None:
        return ""
    number = int(data.warning[_KINDS.index(kind)].lastinfo)
    if kind == "badqpos":
        body = _body_of_qpos(model, number)
    else:
        body = _body_of_dof(model, number)
    who = ""
    if stacked.stepper.name not in PHYSICS:
        who = f", while {_name_stepper(stacked)} advanced the world"
    what = _DIVERGED[kind]
    return f"The {what} diverged at {time:.3f} s, first of body '{body}'{who}: {REMEDY}."


def name_writers(commands: Iterable[Command], stacked: StackedStepper) -> str:
    """Return the possible writers of a bad state, for a message: commands, and the stepper."""
    writers = [f"the command '{command.name}'" for command in commands]
    if stacked.stepper.name != "physics":
        writers.append(_name_stepper(stacked))
    return " or ".join(writers) or "a callback"


def _name_stepper(stacked: StackedStepper) -> str:
    return f"the stepper '{stacked.stepper.name}' of '{stacked.owner}'"


def find_bad_state(model: mujoco.MjModel, data: mujoco.MjData, who: str) -> str:
    """Return a sentence about the first number of the state that is not finite, or is huge.

    Args:
        model: the model.
        data: the data.
        who: the writer of the state, for the sentence.
    """
    owners = {
        "qpos": lambda row: f"body '{_body_of_qpos(model, row[0])}'",
        "qvel": lambda row: f"body '{_body_of_dof(model, row[0])}'",
        "act": lambda row: f"actuator '{_actuator_of_act(model, row[0])}'",
        "ctrl": lambda row: f"actuator '{_actuator(model, row[0])}'",
        "xfrc_applied": lambda row: f"body '{model.body(row[0]).name}'",
        "mocap_pos": lambda row: f"body '{_mocap_body(model, row[0])}'",
        "mocap_quat": lambda row: f"body '{_mocap_body(model, row[0])}'",
        "qacc": lambda row: f"body '{_body_of_dof(model, row[0])}'",
    }
    if not math.isfinite(data.time):
        return f"The time is {data.time}, written by {who}: {REMEDY}."
    for field, describe in owners.items():
        values = getattr(data, field)
        bad = np.argwhere(~(np.abs(values) < _HUGE))  # nan, too
        if len(bad):
            row = tuple(bad[0].tolist())
            return (
                f"{field} of {describe(row)} is {values[row]} at {data.time:.3f} s, written by "
                f"{who}: {REMEDY}."
            )
    return f"The state has a huge number at {data.time:.3f} s, written by {who}: {REMEDY}."


def _actuator(model: mujoco.MjModel, control: int) -> str:
    actuator = int(np.searchsorted(model.actuator_ctrladr, control, side="right")) - 1
    return model.actuator(actuator).name or f"actuator {actuator}"


def _actuator_of_act(model: mujoco.MjModel, activation: int) -> str:
    first, count = model.actuator_actadr, model.actuator_actnum
    found = np.flatnonzero((first <= activation) & (activation < first + count) & (first >= 0))
    return model.actuator(int(found[0])).name or f"actuator {found[0]}"


def _mocap_body(model: mujoco.MjModel, mocap: int) -> str:
    return model.body(int(np.flatnonzero(model.body_mocapid == mocap)[0])).name


def _body_of_qpos(model: mujoco.MjModel, number: int) -> str:
    joint = int(np.searchsorted(model.jnt_qposadr, number, side="right")) - 1
    return model.body(int(model.jnt_bodyid[joint])).name


def _body_of_dof(model: mujoco.MjModel, number: int) -> str:
    return model.body(int(model.dof_bodyid[number])).name
