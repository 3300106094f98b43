"""Moment of a world: everything from which it continues, to the bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from manyworlds.lab.loop.physics_loop import PhysicsLoop
from manyworlds.lab.loop.steppers import TaskSettings
from manyworlds.lab.robots.control import RobotControl, TargetCommand
from manyworlds.lab.robots.controllers import Controller
from manyworlds.lab.world.model_facts import STATE

if TYPE_CHECKING:
    from manyworlds.lab.robots.driving import DriverInputs

NO_TASK_MEMORY = np.zeros(0, np.uint8)
"""Memory of no task."""


@dataclass(frozen=True)
class ControlState:
    """Control of one robot at a moment."""

    command: TargetCommand
    controller: Controller
    settings: Mapping[str, np.ndarray]
    """Gains and commands of the controller, see `Controller.settings`."""
    enabled: bool
    owner: str
    inputs: DriverInputs | None
    actions: int

    @classmethod
    def of(cls, robot: RobotControl) -> ControlState:
        """Return the present control of a robot."""
        law = robot.controller
        settings = {name: np.copy(value) for name, value in law.base.settings().items()}
        return cls(
            robot.command,
            law,
            settings,
            robot.enabled,
            robot.owner,
            robot.inputs,
            robot.actions,
        )

    def is_of(self, robot: RobotControl) -> bool:
        """Return True if this is the present control of a robot."""
        law = robot.controller
        if (
            robot.command is not self.command
            or law is not self.controller
            or robot.inputs is not self.inputs
            or robot.enabled != self.enabled
            or robot.owner != self.owner
            or robot.actions != self.actions
        ):
            return False
        settings = law.base.settings()
        return not (settings or self.settings) or self._has(settings)

    def _has(self, settings: Mapping[str, np.ndarray]) -> bool:
        return settings.keys() == self.settings.keys() and all(
            value.tobytes() == self.settings[name].tobytes() for name, value in settings.items()
        )

    def put(self, robot: RobotControl) -> None:
        """Give a robot this control."""
        robot.controller = self.controller
        robot.enabled = self.enabled
        robot.owner = self.owner
        self.put_command(robot)

    def put_changes(self, robot: RobotControl, since: ControlState) -> None:
        """Give a robot what of this control is another one than at an earlier moment."""
        for name in ("controller", "enabled", "owner", "actions"):
            if getattr(self, name) != getattr(since, name):
                setattr(robot, name, getattr(self, name))
        told = self.command.targets != since.command.targets
        if told.any():
            robot.restore(np.where(told, self.command.targets, robot.command.targets))
        settings = robot.controller.base.settings()
        for name, value in self.settings.items():
            before = since.settings.get(name)
            if name in settings and (before is None or not np.array_equal(value, before)):
                np.copyto(settings[name], value)

    def put_command(self, robot: RobotControl) -> None:
        """Give a robot these targets and inputs, and these settings to the same controller."""
        robot.inputs = self.inputs
        robot.actions = self.actions
        robot.restore(self.command.targets, self.command.time)
        if robot.controller is self.controller:
            for name, value in robot.controller.base.settings().items():
                np.copyto(value, self.settings.get(name, value))


@dataclass(frozen=True)
class ControlStates:
    """Control of all robots at a moment, and what users have set of the task's environment."""

    robots: Mapping[str, ControlState]
    """Control of each robot, by its name."""
    task: TaskSettings | None = None
    """See `StepperWithMemory.settings`; None without a task."""

    @classmethod
    def of(cls, loop: PhysicsLoop) -> ControlStates:
        """Return the present control of a loop's robots."""
        task = loop.steppers.with_memory
        return cls(
            {robot.name: ControlState.of(robot) for robot in loop.controls},
            None if task is None else task.settings(),
        )

    def is_of(self, loop: PhysicsLoop) -> bool:
        """Return True if this is the present control of a loop's robots."""
        robots = self.robots
        for robot in loop.controls:
            if not robots[robot.name].is_of(robot):
                return False
        task = loop.steppers.with_memory
        return task is None or task.settings() == self.task

    def put(self, loop: PhysicsLoop) -> None:
        """Give the robots and the task this control."""
        for robot in loop.controls:
            self.robots[robot.name].put(robot)
        task = loop.steppers.with_memory
        if task is not None and self.task is not None:
            task.put_settings(self.task)

    def put_changes(self, loop: PhysicsLoop, since: ControlStates) -> None:
        """Give the robots and the task what of this control is another one than earlier."""
        for robot in loop.controls:
            self.robots[robot.name].put_changes(robot, since.robots[robot.name])
        task = loop.steppers.with_memory
        if task is not None and self.task is not None and self.task != since.task:
            task.put_settings(self.task)

    def put_commands(self, loop: PhysicsLoop) -> None:
        """Give the robots these targets, and controllers that are still the same their settings."""
        for robot in loop.controls:
            self.robots[robot.name].put_command(robot)


@dataclass(frozen=True, eq=False, kw_only=True)
class WorldState:
    """State from which physics, controllers and a task continue, whoever controls the robots."""

    state: np.ndarray
    """`mjSTATE_INTEGRATION`, shape [num_values]."""
    sensordata: np.ndarray
    """Sensor values, shape [nsensordata]; those of accelerations lag the state by one step."""
    targets: Mapping[str, np.ndarray]
    """Targets of each robot, by its name, each of shape [num_actuators]."""
    memory: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The `law` of each robot by its name, and the law's internal `state`, as plain data."""
    task_memory: np.ndarray = field(default_factory=NO_TASK_MEMORY.copy)
    """Memory of the task's environment that steps the world, uint8, shape [num_bytes]."""

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return float(self.state[0])

    @property
    def num_bytes(self) -> int:
        """Memory of the state."""
        return self.state.nbytes + self.sensordata.nbytes + self.task_memory.nbytes

    def put_state(self, loop: PhysicsLoop, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Return to the state, whoever controls the robots now, and clear a fault.

        Runs in the physics thread.
        """
        loop.clear_fault()
        task = loop.steppers.with_memory
        if task is not None and self.task_memory.size:
            task.recall(self.task_memory.tobytes(), model)
        mujoco.mj_setState(model, data, self.state, STATE)
        # Compute derived fields for readers before the next step. This would change the solver's
        # warm start, which is part of the state and is set again.
        mujoco.mj_forward(model, data)
        mujoco.mj_setState(model, data, self.state, STATE)
        data.sensordata[:] = self.sensordata
        for name, targets in self.targets.items():
            robot = loop.controls[name]
            memory = self.memory[name]
            robot.restore(targets)
            robot.controller.reset()
            if robot.controller.name == memory["law"]:
                robot.controller.load_state_dict(memory["state"])


@dataclass(frozen=True, eq=False, kw_only=True)
class Moment(WorldState):
    """Everything of a moment but the values of the model, from which a world continues."""

    controls: ControlStates
    """Owners, controllers and commands of the robots."""

    @classmethod
    def capture(cls, loop: PhysicsLoop, model: mujoco.MjModel, data: mujoco.MjData) -> Moment:
        """Return the present moment; runs in the physics thread."""
        state = np.empty(mujoco.mj_stateSize(model, STATE))
        mujoco.mj_getState(model, data, state, STATE)
        targets = {}
        memory = {}
        for robot in loop.controls:
            law = robot.controller
            targets[robot.name] = robot.command.targets
            memory[robot.name] = {"law": law.name, "state": law.state_dict()}
        task_memory = NO_TASK_MEMORY
        task = loop.steppers.with_memory
        if task is not None:
            task_memory = np.frombuffer(task.memory(), np.uint8)
        return cls(
            state=state,
            sensordata=data.sensordata.copy(),
            targets=targets,
            memory=memory,
            task_memory=task_memory,
            controls=ControlStates.of(loop),
        )

    def put(self, loop: PhysicsLoop, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Return to the moment, and clear a fault; runs in the physics thread."""
        self.controls.put(loop)  # the controllers that `memory` is of
        self.put_state(loop, model, data)
        self.controls.put(loop)  # commands of that time, and what was set after the last step
