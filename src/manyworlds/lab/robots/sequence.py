"""Pose sequences."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from manyworlds.lab.robots.controllers import Controller, RobotActuators

if TYPE_CHECKING:
    from manyworlds.lab.robots.control import RobotControl

SEQUENCE = "sequence"
"""Owner of robots that move through a pose sequence."""


@dataclass(frozen=True, kw_only=True)
class Pose:
    """One pose of a sequence."""

    targets: Mapping[str, float]
    """Targets by actuator name; the other actuators keep theirs."""
    blend: float = 1.0
    """Duration of the transition to the pose [s]."""
    hold: float = 2.0
    """Time at the pose [s]."""
    name: str = ""


class PoseSequencer(Controller):
    """Moves a robot smoothly from pose to pose, in simulated time, while `sequence` owns it.

    Transitions follow `3 s^2 - 2 s^3` of the relative time s from 0 to 1: they start and end at
    rest. The targets pass to another controller. After another owner, the sequence continues with
    the pose that it was at.

    Args:
        robot: controls of the robot.
        poses: the poses, in order.
        law: law that turns targets into controls; None takes the robot's present one.
        loop: whether to restart after the last pose.
        delay: time before the first transition [s].

    Raises:
        ValueError: there is no pose, or a time is negative.
        KeyError: the robot has no actuator that a pose names.
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
        """Poses and start requested by other threads, until the physics thread takes them."""
        self._pose = 0
        self._forget()

    @property
    def poses(self) -> tuple[Pose, ...]:
        """The poses, in order."""
        with self._lock:
            return self._poses if self._next is None else self._next[0]

    @property
    def base(self) -> Controller:
        """The innermost law, to which the targets pass."""
        return self._law

    @property
    def pose(self) -> int:
        """Index of the pose that it is at, or on the way to."""
        return self._pose

    @property
    def is_playing(self) -> bool:
        """True while it controls the robot."""
        return self._robot.owner == SEQUENCE and self._robot.controller is self

    def play(self) -> None:
        """Own the robot, and continue."""
        if not self.is_playing:
            self._robot.controller = self
            self._before = self._robot.take(SEQUENCE)

    def stop(self) -> None:
        """Return the robot to its previous owner; its targets stay as they are."""
        if self.is_playing:
            if self._last is not None:
                self._robot.restore(self._last)
            self._robot.take(self._before)

    def go_to(self, pose: int) -> None:
        """Start the transition to a pose from the robot's present targets.

        Raises:
            ValueError: there is no such pose.
        """
        with self._lock:
            poses = self.poses
            if not 0 <= pose < len(poses):
                raise ValueError(f"There is no pose {pose}: there are {len(poses)}.")
            self._next = poses, pose

    def load(self, poses: tuple[Pose, ...]) -> None:
        """Replace the poses, and start from the first one.

        Raises:
            ValueError: there is no pose, or a time is negative.
            KeyError: the robot has no actuator that a pose names.
        """
        with self._lock:
            self._next = self._checked(poses), 0

    def rebuilt(self, model: mujoco.MjModel, actuators: RobotActuators) -> PoseSequencer | None:
        """Return itself, which continues with its pose; None if its law cannot continue."""
        law = self._law.rebuilt(model, actuators)
        if law is None:
            return None
        self._checked(self.poses)
        self._law = law
        self._forget()
        return self

    def reset(self) -> None:
        """Restart from the first pose."""
        self._pose = 0
        self._forget()
        self._law.reset()

    def state_dict(self) -> dict[str, object]:
        """Return the pose, its start time, and the initial targets, as plain data."""
        return {
            "pose": self._pose,
            "since": self._since,
            "start": None if self._start is None else self._start.tolist(),
            "last": None if self._last is None else self._last.tolist(),
            "law": self._law.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Set the internal state that `state_dict` returned."""
        with self._lock:
            self._poses = self.poses
            self._next = None
        self._pose = min(state["pose"], len(self._poses) - 1)
        self._since = state["since"]
        self._start = None if state["start"] is None else np.array(state["start"])
        self._last = None if state["last"] is None else np.array(state["last"])
        self._law.load_state_dict(state["law"])

    def compute(self, model: mujoco.MjModel, data: mujoco.MjData, target: np.ndarray) -> np.ndarray:
        """Return the controls during the sequence, shape [num_controls]."""
        if self._robot.owner != SEQUENCE:
            self._forget()
            return self._law.compute(model, data, target)
        self._last = self._advance(data.time, target)
        return self._law.compute(model, data, self._last)

    def _advance(self, time: float, target: np.ndarray) -> np.ndarray:
        """Return the targets at a time, shape [num_controls]."""
        with self._lock:
            wanted, self._next = self._next, None
            if wanted is not None:
                self._poses, self._pose = wanted
        if self._start is None or self._since is None or self._last is None:
            self._start = target.copy()
            self._since = time + self.delay
        elif wanted is not None:
            self._start = self._last
            self._since = time
        pose = self._poses[self._pose]
        elapsed = time - self._since
        if pose.blend == 0.0:
            s = float(elapsed >= 0.0)
        else:
            s = min(max(elapsed / pose.blend, 0.0), 1.0)
        goal = self._start.copy()
        goal[self._robot.actuators.indices(pose.targets)] = list(pose.targets.values())
        now = self._start + (3.0 * s * s - 2.0 * s**3) * (goal - self._start)
        if elapsed >= pose.blend + pose.hold and (self.loop or self._pose + 1 < len(self._poses)):
            # Time beyond the end of a pose counts for the next, so that none is lost.
            self._since += pose.blend + pose.hold
            self._start = goal
            self._pose = (self._pose + 1) % len(self._poses)
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
        """Restart with a transition from the targets at that time."""
        self._since: float | None = None
        self._start: np.ndarray | None = None
        self._last: np.ndarray | None = None
