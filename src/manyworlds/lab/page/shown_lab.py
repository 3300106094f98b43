"""The lab as the parts of a page see it, from any process."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.lab.facts import LabFacts
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.robots.controllers import RobotActuators
from manyworlds.lab.task.task_steps import StepReport
from manyworlds.lab.verb_methods import LabVerbs
from manyworlds.lab.world.elements import RobotElements

if TYPE_CHECKING:
    from manyworlds.lab.face import LabFace
    from manyworlds.lab.task.env_stepper import EnvironmentStepper


@dataclass(frozen=True, eq=False)
class ShownControls:
    """Controls of a robot, which change only with a rebuild."""

    name: str
    actuators: RobotActuators
    neutral: np.ndarray
    """Targets before the first write, shape [num_actuators]."""
    types: tuple[str, ...]
    """Element of MJCF that each actuator was written as: `position`, `motor` ..."""


class ShownTask:
    """The environment that steps the world.

    Args:
        lab: the lab.
        stepper: the environment's stepper, if it is in this process.
    """

    def __init__(self, lab: ShownLab, stepper: EnvironmentStepper | None) -> None:
        self.stepper = stepper
        self.env = None if stepper is None else stepper.env
        self._lab = lab
        task = lab.face.verbs.read_task()
        self.differences: list[str] = task["differences"]
        self.step_dt: float = task["step_dt"]
        self.decimation: int = task["decimation"]
        self.most_rewards: int = task["most_rewards"]
        self.own_widgets: list[str] = task["own_widgets"]
        self.is_entered: bool = task["entered"]
        self.name: str = task["name"]
        self.terrain_cells: dict[str, int] = task["terrain_cells"]
        self.terms: dict[str, object] = {
            name: SimpleNamespace(steering=bounds, steer=self._refuse)
            for name, bounds in task["steered"].items()
        }
        for name, count in task["motions"].items():
            frame = lambda _, name=name: self.frames[name]  # noqa: E731
            self.terms[name] = SimpleNamespace(num_frames=count, frame_of=frame, seek=self._refuse)
        self.update()

    def update(self) -> None:
        """Read the results of the last control step."""
        reply = self._lab.face.verbs.read_task_report()
        report = reply["report"]
        report["ended_by"] = tuple(report["ended_by"])
        report["commands"] = {name: tuple(row) for name, row in report["commands"].items()}
        self.report = StepReport(**report)
        self.frames: dict[str, int] = reply["frames"]
        self.auto_reset: bool = reply["auto_reset"]
        self.substep: int = reply["substep"]
        self.terrain_cell: dict[str, int] = reply["terrain_cell"]

    def _refuse(self, *_: object) -> None:
        raise RuntimeError("The page's copy of a command cannot be set: call the lab's verbs.")


class ShownLab:
    """The world that a page shows, the newest facts and snapshot of its lab, and the verbs.

    Args:
        face: the lab.
    """

    def __init__(self, face: LabFace) -> None:
        self.face = face
        self._facts = face.facts
        self.model: mujoco.MjModel = face.model
        """The compiled model until the next rebuild: a copy, or in the lab's process itself."""
        self.elements = RobotElements(face.model, face.robots)
        """Elements of the model by the robot that they belong to."""
        self.controls = {name: self._read_controls(name) for name in self._facts.robots}
        """Controls of the robots that have actuators, by name."""
        self.environment: ShownTask | None = None
        """The task whose environment steps the world."""
        if self._facts.has_task:
            self.environment = ShownTask(self, getattr(face, "environment", None))

    @property
    def facts(self) -> LabFacts:
        """The newest facts of the world that the page shows."""
        fresh = self.face.facts
        if fresh.model_hash == self._facts.model_hash:  # else the page shows the new world soon
            self._facts = fresh
        return self._facts

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot of the world."""
        return self.face.snapshot

    @property
    def verbs(self) -> LabVerbs:
        """Verbs of the lab."""
        return self.face.verbs

    def _read_controls(self, name: str) -> ShownControls:
        reply = self.face.verbs.read_robot(robot=name)
        ids, actuators = (np.array(reply[key], int) for key in ("controls", "actuator_ids"))
        return ShownControls(
            name,
            RobotActuators(tuple(reply["actuators"]), ids, actuators, np.zeros(0, int)),
            np.array(reply["neutral"]),
            tuple(reply["types"]),
        )
