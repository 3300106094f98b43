"""A trained policy as the control law of a robot."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from manyworlds.lab.control import POLICY, RobotControl
from manyworlds.lab.controllers import Controller, RobotActuators
from manyworlds.rl import OnnxPolicy


class PolicyController(Controller):
    """Moves a robot by an exported policy while `policy` owns it, exactly as `OnnxPolicy.step`.

    While somebody else owns the robot, its controls are what he says; the policy begins anew when
    it gets the robot back.

    Args:
        path: the exported policy.
        model: the lab's model.
        robot: the controls of the robot; the policy must move all its actuators and no others.
        commands: what each command term asks for; 0 where nothing is given.

    Raises:
        ValueError: the policy does not fit the robot or the model; the message says where they
            differ.
    """

    name = owner = POLICY

    def __init__(
        self,
        path: str | Path,
        model: mujoco.MjModel,
        robot: RobotControl,
        commands: Mapping[str, Any] | None = None,
    ) -> None:
        self.policy = OnnxPolicy(path, model, commands=commands)
        self._robot = robot
        moved = {int(model.actuator(name).id) for name in self.policy.actuator_names}
        own = set(robot.actuators.actuator_ids.tolist())
        if moved != own:
            differences = [
                f"{what} {', '.join(model.actuator(i).name for i in sorted(ids))}"
                for what, ids in (("does not move", own - moved), ("also moves", moved - own))
                if ids
            ]
            raise ValueError(
                f"The policy '{path}' does not fit the robot '{robot.name}': it "
                f"{'; it '.join(differences)}."
            )
        self.reset()

    @property
    def commands(self) -> dict[str, np.ndarray]:
        """What command terms ask for; write into the arrays."""
        return self.policy.commands

    def reset(self) -> None:
        """Forget everything; commands stay."""
        self.policy.reset()
        self._time: float | None = None
        self._substep = 0

    def state_dict(self) -> dict[str, Any]:
        """What it remembers, and where in its control period it is."""
        ctrl = None if self._time is None else self._ctrl.tolist()
        own = {"time": self._time, "substep": self._substep, "ctrl": ctrl}
        return {**own, "policy": self.policy.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` returned."""
        self._time, self._substep = state["time"], state["substep"]
        self._ctrl = np.array(state["ctrl"] or [])
        self.policy.load_state_dict(state["policy"])

    def rebuilt(self, model: mujoco.MjModel, actuators: RobotActuators) -> PolicyController:
        """Return one that remembers the same."""
        law = PolicyController(self.policy.path, model, self._robot, self.commands)
        law.load_state_dict(self.state_dict())
        return law

    def compute(self, model: mujoco.MjModel, data: mujoco.MjData, target: np.ndarray) -> np.ndarray:
        """Return the controls; act once per control period."""
        if self._robot.owner != POLICY:
            self._time = None
            return target
        if self._time is not None and data.time == self._time:
            return self._ctrl  # the world was not moved on, as while it is paused
        if self._time is None or data.time < self._time:
            self.reset()
            mujoco.mj_step1(model, data)
        else:
            self._substep += 1
        if self._substep == self.policy.description["decimation"]:
            self.policy.end_period(data)
            self._substep = 0
        if self._substep == 0:
            self.policy.begin_period(data)
        self.policy.apply(data)
        self._time = data.time
        self._ctrl = data.ctrl[self._robot.actuators.ids].copy()
        return self._ctrl
