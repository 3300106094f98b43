"""The lab as the parts of a page see it: names of `LiveLab`, for reading, from any process."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

import mujoco
import numpy as np

from manyworlds.lab.loop.faults import explain_warnings
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.robots.control import TargetCommand
from manyworlds.lab.robots.controllers import RobotActuators
from manyworlds.lab.task.step_report import StepReport
from manyworlds.lab.verb_methods import LabVerbs, only_reads
from manyworlds.lab.world.elements import RobotElements

if TYPE_CHECKING:
    from manyworlds.lab.face import LabFace
    from manyworlds.lab.task.env_driver import EnvironmentDriver
    from manyworlds.lab.verb_methods import ReadStatusReply

Status = dict[str, Any]
"""Plain data of a part of a reply of `read_status`."""

_STATUS_S = 0.1
"""Longest age of the status while nothing is called [s]."""

_KEYS = {"active": "active_session", "duration": "duration_s", "time": "replay_time"}
"""Fields of the status by the names of `Recorder` and `Replay`."""


@dataclass(frozen=True)
class MirroredWorld:
    """The world: compiled model, robots, and what was left out."""

    model: mujoco.MjModel
    robots: Mapping[str, str]
    """Prefix of the elements of each robot, by the robot's name."""
    elements: RobotElements
    """Which elements of the model belong to which robot."""
    errors: Mapping[str, str]
    """Reasons why entities were left out, by name."""
    warnings: Sequence[str]
    """Sentences about what is probably wrong with the world's file."""


@dataclass(eq=False)
class MirroredRobot:
    """Controls of a robot."""

    name: str
    actuators: RobotActuators
    neutral: np.ndarray
    """Targets before the first write, shape [num_actuators]."""
    types: tuple[str, ...]
    """Element of MJCF that each actuator was written as: `position`, `motor` ..."""
    owner: str = ""
    enabled: bool = True
    command: TargetCommand = field(default_factory=lambda: TargetCommand(np.zeros(0), -1.0))
    commands: dict[str, np.ndarray] = field(default_factory=dict)
    """Values of the policy's commands, by name."""
    reasons: list[str] = field(default_factory=list)
    """Reasons that keep it from moving."""
    differences: list[str] = field(default_factory=list)
    """Differences between the world and that of its policy's training."""
    adopts_gains: bool = False
    """True if the world has taken over the gains of training."""

    def show(self, status: Status) -> None:
        """Take over the robot's part of the status."""
        self.owner, self.enabled = status["owner"], status["enabled"]
        self.reasons = list(status["reasons"])
        self.differences, self.adopts_gains = status["differences"], status["adopts_gains"]
        number = status["command_number"]
        if number != self.command.number:
            targets = np.array([*status["targets"].values()], float)
            self.command = TargetCommand(targets, status["targets_time"], number)
        self.commands = {name: np.array(values) for name, values in status["commands"].items()}


class MirroredRobots:
    """Controls of all robots that have actuators."""

    def __init__(self, robots: Mapping[str, MirroredRobot]) -> None:
        self._robots = dict(robots)

    def __getitem__(self, name: str) -> MirroredRobot:
        return self._robots[name]

    def __iter__(self) -> Iterator[MirroredRobot]:
        return iter(self._robots.values())

    def find(self, name: str) -> MirroredRobot | None:
        """Return the controls of a robot, or None if it has none."""
        return self._robots.get(name)

    def show(self, status: Status) -> None:
        """Take over the robots' part of the status."""
        for name, robot in self._robots.items():
            if name in status:  # else the world was rebuilt
                robot.show(status[name])


class MirroredKeyframes:
    """Keyframes of the model."""

    def __init__(self, lab: LabMirror) -> None:
        self._lab = lab
        self._names: dict[str, list[str]] = {}

    def names(self, robot: str) -> list[str]:
        """Return the names of a robot's keyframes."""
        if robot not in self._names:
            reply = self._lab.face.verbs.list_keyframes(robot=robot)
            self._names[robot] = reply["keyframes"]
        return self._names[robot]

    def is_holding(self, robot: str) -> bool:
        """Return True while a robot is held in a keyframe."""
        return robot in self._lab.status["held"]


class _StatusPart:
    """Part of the status whose fields are attributes, by the names of the lab's own class."""

    def __init__(self, lab: LabMirror, part: Literal["recording", "replay"]) -> None:
        self._lab, self._part = lab, part

    def __getattr__(self, name: str) -> Any:
        """Return a field of the newest status."""
        status, key = self._lab.status[self._part], _KEYS.get(name, name)
        if key not in status:
            raise AttributeError(f"The status has no '{key}': it has {', '.join(status)}.")
        return status[key]


class MirroredRecorder(_StatusPart):
    """Progress of the recording (`is_recording`, `num_frames` ...), and names of recordings."""

    @property
    def sessions(self) -> list[str]:
        """Names of the recordings; asks the lab each time."""
        reply = self._lab.face.verbs.replay_list_sessions()
        return reply["sessions"]


class MirroredReplay(_StatusPart):
    """Progress of the replay: `is_active`, `playing`, `time`, `duration`, `rate` ..."""

    @property
    def camera(self) -> np.ndarray | None:
        """Recorded pose of the camera, shape [6]; None if there is none."""
        pose = self._lab.status["replay"]["camera"]
        return None if pose is None else np.array(pose)


class MirroredTask:
    """The environment that drives the world.

    Args:
        lab: the lab.
        driver: the environment's driver, if it is in this process.
    """

    def __init__(self, lab: LabMirror, driver: EnvironmentDriver | None) -> None:
        self.driver = driver
        self.env = None if driver is None else driver.env
        self._lab = lab
        task = lab.face.verbs.read_task()
        self.differences: list[str] = task["differences"]
        self.step_dt: float = task["step_dt"]
        self.decimation: int = task["decimation"]
        self.most_rewards: int = task["most_rewards"]
        self.own_widgets: list[str] = task["own_widgets"]
        self.is_entered: bool = task["entered"]
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


class LabMirror:
    """A lab for reading, with the names of `LiveLab`, and its verbs.

    What is not in snapshots is read as a status, again as soon as it is old or a verb other than
    a reading one was called.

    Args:
        face: the lab.
    """

    def __init__(self, face: LabFace) -> None:
        self.face = face
        self.verbs = LabVerbs(self._call)
        """Verbs of the lab; the status is read again after one that may change something."""
        self.max_age = _STATUS_S
        """Age from which the status is read again [s]."""
        self._lock = threading.Lock()
        self._read_at = -math.inf
        self._robots = MirroredRobots({})
        status = self.status
        self.world = MirroredWorld(
            face.model,
            face.robots,
            RobotElements(face.model, face.robots),
            status["left_out"],
            status["world_warnings"],
        )
        self._robots = MirroredRobots({name: self._robot(name) for name in status["robots"]})
        self._read_at = -math.inf
        self.keyframes = MirroredKeyframes(self)
        self.recorder = MirroredRecorder(self, "recording")
        self.replay = MirroredReplay(self, "replay")
        self.environment: MirroredTask | None = None
        if status["has_task"]:
            self.environment = MirroredTask(self, getattr(face, "environment", None))

    @property
    def status(self) -> ReadStatusReply:
        """The reply of `read_status`."""
        with self._lock:
            if time.monotonic() >= self._read_at + self.max_age:
                self._read_at = time.monotonic()
                self._status = self.face.verbs.read_status()
                self._robots.show(self._status["robots"])
            return self._status

    @property
    def controls(self) -> MirroredRobots:
        """Controls of the robots that have actuators."""
        _ = self.status
        return self._robots

    @property
    def model_options(self) -> dict[str, np.ndarray]:
        """Options of the compiled model by name, before all changes, each of its own shape."""
        reply = self.face.verbs.read_sim_options()
        return {name: np.array(value) for name, value in reply["model_options"].items()}

    @property
    def loop(self) -> SimpleNamespace:
        """Speed and pace of the loop, and failures of callbacks."""
        status = self.status
        return SimpleNamespace(
            speed=status["percent"] / 100.0,
            pace=SimpleNamespace(real_time_factor=status["real_time_factor"]),
            reports=SimpleNamespace(lines=status["failures"]),
        )

    @property
    def states(self) -> SimpleNamespace:
        """Names of the saved states."""
        return SimpleNamespace(names=self.status["states"])

    def __getitem__(self, name: str) -> MirroredRobot:
        """Return the controls of a robot."""
        return self.controls[name]

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot of the world."""
        return self.face.snapshot

    @property
    def model(self) -> mujoco.MjModel:
        """The compiled model."""
        return self.face.model

    @property
    def paused(self) -> bool:
        """True while the world is paused."""
        return self.face.snapshot.paused

    def _call(self, verb: str, **fields: object) -> dict[str, object]:
        try:
            return self.face.call(verb, **fields)
        finally:
            if not only_reads(verb):
                self._read_at = -math.inf

    def explain_warnings(self) -> list[str]:
        """Return the number and the meaning of MuJoCo's warnings since the last reset, as text."""
        return explain_warnings(self.snapshot.warnings)

    def why_not_moving(self, name: str) -> list[str]:
        """Return the reasons that keep a robot from moving, as text; empty if nothing does."""
        return self.controls[name].reasons

    def _robot(self, name: str) -> MirroredRobot:
        reply = self.face.verbs.read_robot(robot=name)
        ids, actuators = (np.array(reply[key], int) for key in ("controls", "actuator_ids"))
        names = tuple(reply["actuators"])
        return MirroredRobot(
            name,
            RobotActuators(names, ids, actuators, np.zeros(0, int)),
            np.array(reply["neutral"]),
            tuple(reply["types"]),
        )
