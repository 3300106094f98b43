"""Velocity commands of robots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from manyworlds.lab.robots.control import RobotControl

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_TWIST = "twist"


def read_twist(lab: LiveLab, robot: RobotControl) -> list[float]:
    """Return the velocity command of a robot, or of the task that steps the world.

    Returns:
        Forward and left velocity [m/s] and yaw rate [rad/s]; empty without such a command. It is
        the command `twist`, or the only one that has three values.
    """
    commands = _commands(lab, robot)
    name = _find(commands)
    return np.ravel(commands[name]).tolist() if name else []


def read_inputs(lab: LiveLab) -> dict[str, dict[str, object]]:
    """Return `twist` and `actions` of each robot that has any, for programs that step it."""
    robots = {
        robot.name: {"twist": read_twist(lab, robot), "actions": robot.actions}
        for robot in lab.controls
    }
    return {name: inputs for name, inputs in robots.items() if any(inputs.values())}


def write_twist(lab: LiveLab, robot: RobotControl, values: np.ndarray) -> bool:
    """Set the command that `read_twist` returns, unless it is set; return False without one."""
    commands = _commands(lab, robot)
    name = _find(commands)
    if name and lab.environment is not None:
        steered = tuple(values.tolist())
        if lab.environment.steered.get(name) != steered:
            lab.environment.steer(name, steered)
    elif name and not np.array_equal(np.ravel(commands[name]), values):
        present: np.ndarray = getattr(robot.controller.base, "commands")[name]  # noqa: B009
        lab.loop.do(
            lambda model, data: np.copyto(present, values.reshape(present.shape)),
            edits_model=False,
        )
    return bool(name)


def _commands(lab: LiveLab, robot: RobotControl) -> Mapping[str, Sequence[float] | np.ndarray]:
    if lab.environment is not None:
        return lab.environment.report.commands
    return getattr(robot.controller.base, "commands", {})


def _find(commands: Mapping[str, Sequence[float] | np.ndarray]) -> str:
    three = [name for name, values in commands.items() if np.size(values) == 3]
    if _TWIST in three:
        return _TWIST
    return three[0] if len(three) == 1 else ""
