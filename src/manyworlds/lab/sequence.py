"""Going from pose to pose."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from manyworlds.lab.controllers import Controller, RobotActuators

if TYPE_CHECKING:
    from manyworlds.lab.control import RobotControl

SEQUENCE = "sequence"
"""The owner of robots that go through poses."""


@dataclass(frozen=True, kw_only=True)
class Pose:
    """Where a sequence stops for a while."""

    targets: Mapping[str, float]
    """What actuators are told, by name; the others keep what they had."""
    blend: float = 1.0
    """How long the way there takes [s]."""
    hold: float = 2.0
    """How long it stays [s]."""
    name: str = ""


class PoseSequencer(Controller):
    """Goes from pose to pose, smoothly, in simulated time, while `sequence` has the robot.

    Its ways are `3 s^2 - 2 s^3` of the time s that has passed, from 0 to 1: they begin and end at
    rest. It hands its targets on to another control law. When somebody else has had the robot, it
    goes on with the pose that it was at.

    Args:
        robot: the controls of the robot.
        poses: where to go, one after the other.
        law: turns targets into controls; None takes the robot's present one.
        loop: whether to begin again at the end.
        delay: how long the robot stays as it is before the first way begins [s].

    Raises:
        ValueError: there is no pose, or a time is negative.
        KeyError: a pose names an actuator that is not there.
    """

    name = owner = SEQUENCE

    def __init__(
        self,
        robot: RobotControl,
        poses: tuple[Pose, ...],
        law: Controller | None = None,
        loop: bool = True,
        delay: float = 0.5,
    ) -> None:
        if delay < 0.0:
            raise ValueError(f"The delay of a sequence must be at least 0 s, got {delay}.")
        self.loop = loop
        self.delay = delay
        self._robot = robot
        self._law = (robot.controller if law is None else law).base
        self._before = robot.owner
        self._poses = self._checked(poses)
        self._lock = threading.RLock()
        self._next: tuple[tuple[Pose, ...], int] | None = None
        """What others' threads want, until the engine's sees it."""
        self._pose = 0
        self._forget()

    @property
    def poses(self) -> tuple[Pose, ...]:
        """Where it goes."""
        with self._lock:
            return self._poses if self._next is None else self._next[0]

    @property
    def base(self) -> Controller:
        """The law that it hands its targets to."""
        return self._law

    @property
    def pose(self) -> int:
        """Which pose it is at, or on the way to."""
        return self._pose

    @property
    def is_playing(self) -> bool:
        """Whether it moves the robot."""
        return self._robot.owner == SEQUENCE and self._robot.controller is self

    def play(self) -> None:
        """Take the robot, and go on."""
        if not self.is_playing:
            self._robot.controller = self
            self._before = self._robot.take(SEQUENCE)

    def stop(self) -> None:
        """Give the robot back to whoever had it; it is told to stay where it is."""
        if self.is_playing:
            if self._last is not None:
                self._robot.restore(self._last)
            self._robot.take(self._before)

    def go_to(self, pose: int) -> None:
        """Begin the way to a pose from where the robot is now.

        Raises:
            ValueError: there is no such pose.
        """
        with self._lock:
            poses = self.poses
            if not 0 <= pose < len(poses):
                raise ValueError(f"There is no pose {pose}: there are {len(poses)}.")
            self._next = poses, pose

    def load(self, poses: tuple[Pose, ...]) -> None:
        """Go through other poses, from the first of them on.

        Raises:
            ValueError: there is no pose, or a time is negative.
            KeyError: a pose names an actuator that is not there.
        """
        with self._lock:
            self._next = self._checked(poses), 0

    def rebuilt(self, model: mujoco.MjModel, actuators: RobotActuators) -> PoseSequencer | None:
        """Return itself, which goes on with the pose that it was at; None if its law cannot."""
        law = self._law.rebuilt(model, actuators)
        if law is None:
            return None
        self._checked(self.poses)
        self._law = law
        self._forget()
        return self

    def reset(self) -> None:
        """Begin again."""
        self._pose = 0
        self._forget()
        self._law.reset()

    def state_dict(self) -> dict[str, Any]:
        """Which pose, since when, and from where, as plain data."""
        rows = {"start": self._start, "last": self._last}
        return {
            "pose": self._pose,
            "since": self._since,
            **{name: None if row is None else row.tolist() for name, row in rows.items()},
            "law": self._law.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        with self._lock:
            self._poses, self._next = self.poses, None
        self._pose, self._since = min(state["pose"], len(self._poses) - 1), state["since"]
        self._start, self._last = (
            None if state[name] is None else np.array(state[name]) for name in ("start", "last")
        )
        self._law.load_state_dict(state["law"])

    def compute(self, model: mujoco.MjModel, data: mujoco.MjData, target: np.ndarray) -> np.ndarray:
        """Return the controls on the way between poses."""
        if self._robot.owner != SEQUENCE:
            self._forget()
            return self._law.compute(model, data, target)
        self._last = self._advance(data.time, target)
        return self._law.compute(model, data, self._last)

    def _advance(self, time: float, target: np.ndarray) -> np.ndarray:
        """Return what the actuators are to be told now."""
        with self._lock:
            wanted, self._next = self._next, None
            if wanted is not None:
                self._poses, self._pose = wanted
        if self._start is None or self._since is None or self._last is None:
            self._start, self._since = target.copy(), time + self.delay
        elif wanted is not None:
            self._start, self._since = self._last, time
        pose = self._poses[self._pose]
        elapsed = time - self._since
        s = float(elapsed >= 0.0) if pose.blend == 0.0 else np.clip(elapsed / pose.blend, 0.0, 1.0)
        goal = self._start.copy()
        goal[self._robot.actuators.indices(pose.targets)] = list(pose.targets.values())
        now = self._start + (3.0 * s * s - 2.0 * s**3) * (goal - self._start)
        if elapsed >= pose.blend + pose.hold and (self.loop or self._pose + 1 < len(self._poses)):
            # What is over of the last pose counts for the next, so that no time is lost.
            self._since += pose.blend + pose.hold
            self._start, self._pose = goal, (self._pose + 1) % len(self._poses)
        return now

    def _checked(self, poses: tuple[Pose, ...]) -> tuple[Pose, ...]:
        if not poses:
            raise ValueError("A sequence needs at least one pose.")
        for pose in poses:
            if min(pose.blend, pose.hold) < 0.0:
                raise ValueError(f"Times of pose '{pose.name}' must not be negative: {pose}.")
            self._robot.actuators.indices(pose.targets)
        return tuple(poses)

    def _forget(self) -> None:
        """Begin with a way from what the robot is told then."""
        self._since: float | None = None
        self._start: np.ndarray | None = None
        self._last: np.ndarray | None = None
