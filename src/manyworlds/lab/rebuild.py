"""Rebuild of a world: elements of the same name keep their state."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from manyworlds.lab.control import RobotControls
from manyworlds.lab.recording import joint_types, state_index
from manyworlds.lab.world import STATE


@dataclass(frozen=True, kw_only=True)
class Rebuilt:
    """Result of a rebuild."""

    error: str = ""
    """Reason why the new world does not compile and the old one continues; empty if it compiles."""
    kept: tuple[str, ...] = ()
    """Joints that kept their state."""
    fresh: tuple[str, ...] = ()
    """Joints that start in the initial state: new ones, and those of another type."""
    gone: tuple[str, ...] = ()
    """Joints that the new world does not have."""
    dropped_laws: tuple[str, ...] = ()
    """Robots whose controller does not fit them any more and was removed."""

    def __bool__(self) -> bool:
        """Return True if the new world runs."""
        return not self.error


def carry_state(
    old: mujoco.MjModel, old_data: mujoco.MjData, new: mujoco.MjModel, data: mujoco.MjData
) -> Rebuilt:
    """Copy the time, and the state of elements of the same name and type, to another world."""
    before, after = (np.empty(mujoco.mj_stateSize(model, STATE)) for model in (old, new))
    mujoco.mj_getState(old, old_data, before, STATE)
    mujoco.mj_getState(new, data, after, STATE)
    old_index, index = state_index(old), state_index(new)
    old_types, types = joint_types(old), joint_types(new)
    kept = tuple(name for name, kind in types.items() if old_types.get(name) == kind)
    for part, elements in index.items():
        for name, (start, width) in elements.items():
            source, old_width = old_index[part].get(name, (0, -1))
            if width == old_width and (name in kept or part not in ("qpos", "qvel")):
                after[start : start + width] = before[source : source + width]
    mujoco.mj_setState(new, data, after, STATE)
    data.time = old_data.time
    mujoco.mj_forward(new, data)
    return Rebuilt(
        kept=kept,
        fresh=tuple(name for name in types if name not in kept),
        gone=tuple(name for name in old_types if name not in types),
    )


def carry_controls(
    old: RobotControls, fresh: RobotControls, model: mujoco.MjModel
) -> tuple[RobotControls, tuple[str, ...]]:
    """Continue the control of robots of the same name: owners, targets and controllers.

    Returns:
        The controls of the new world, and the robots whose controller does not fit any more.
    """
    desk, dropped = {}, []
    for robot in fresh:
        known = old.find(robot.name)
        if known is not None and not known.rebuild(model, robot.actuators, robot.neutral):
            dropped.append(robot.name)
        desk[robot.name] = known or robot
    return RobotControls(desk), tuple(dropped)
