"""Control laws: from what a robot is told to the controls of its actuators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import mujoco
import numpy as np

_ON_JOINTS = (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT)
_AXES = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)


@dataclass(frozen=True)
class RobotActuators:
    """Where the actuators of one robot are in the model."""

    names: tuple[str, ...]
    """One for each control, without the robot's prefix; `name[1]` for an actuator's second."""
    ids: np.ndarray
    """Where the controls are in `data.ctrl`, ascending."""
    actuator_ids: np.ndarray
    """The actuator of each control."""

    def indices(self, values: Mapping[str, float]) -> list[int]:
        """Which of the actuators are named.

        Raises:
            KeyError: a name is none of them.
        """
        for name in values:
            if name not in self.names:
                raise KeyError(
                    f"There is no actuator '{name}'; available: {', '.join(self.names) or 'none'}."
                )
        return [self.names.index(name) for name in values]


class Controller(Protocol):
    """Computes controls, in the engine's thread and before each step."""

    name: str

    def compute(self, model: mujoco.MjModel, data: mujoco.MjData, target: np.ndarray) -> np.ndarray:
        """Return the controls of the robot's actuators for what it is told.

        Args:
            model: the model.
            data: the state before the step.
            target: what the owner tells each actuator.
        """
        ...

    def reset(self) -> None:
        """Forget what was before."""
        ...


class Passthrough:
    """Controls are what the owner says."""

    name = "passthrough"

    def compute(self, model: mujoco.MjModel, data: mujoco.MjData, target: np.ndarray) -> np.ndarray:
        """Return the target."""
        return target

    def reset(self) -> None:
        """Nothing to forget."""


class PdController:
    """Efforts that pull joints to targets: `kp (target - q) - kd v`, limited.

    For actuators whose control is an effort and that act on a hinge or a slide; targets [rad or m]
    are kept within the joints' ranges.

    Args:
        model: the model.
        actuators: those of the robot.
        kp: stiffness, one for all [N m/rad or N/m].
        kd: damping, one for all [N m s/rad or N s/m].
        limit: largest effort [N m or N].

    Raises:
        ValueError: an actuator does not act on a hinge or a slide.
    """

    name = "pd"

    def __init__(
        self,
        model: mujoco.MjModel,
        actuators: RobotActuators,
        kp: float = 100.0,
        kd: float = 5.0,
        limit: float = 200.0,
    ) -> None:
        pairs = zip(actuators.names, actuators.actuator_ids.tolist(), strict=True)
        joints = [_joint(model, name, actuator) for name, actuator in pairs]
        self._actuators = actuators
        self._q = model.jnt_qposadr[joints]
        self._v = model.jnt_dofadr[joints]
        limited = model.jnt_limited[joints].astype(bool)
        self._low = np.where(limited, model.jnt_range[joints, 0], -np.inf)
        self._high = np.where(limited, model.jnt_range[joints, 1], np.inf)
        shape = len(joints)
        self.kp, self.kd = np.full(shape, float(kp)), np.full(shape, float(kd))
        self.limit = np.full(shape, float(limit))

    def set_gains(
        self,
        kp: Mapping[str, float] | None = None,
        kd: Mapping[str, float] | None = None,
        limit: Mapping[str, float] | None = None,
    ) -> None:
        """Change gains of the actuators named; the others stay.

        Raises:
            KeyError: there is no such actuator.
            ValueError: a gain is negative or not finite.
        """
        changes = (("kp", kp), ("kd", kd), ("limit", limit))
        fresh = {}
        for what, values in changes:
            array: np.ndarray = getattr(self, what).copy()
            for index, (name, value) in zip(
                self._actuators.indices(values or {}), (values or {}).items(), strict=True
            ):
                if not 0.0 <= value < np.inf:
                    raise ValueError(f"{what} of '{name}' must be at least 0, got {value}.")
                array[index] = value
            fresh[what] = array
        for what, array in fresh.items():
            setattr(self, what, array)

    def compute(self, model: mujoco.MjModel, data: mujoco.MjData, target: np.ndarray) -> np.ndarray:
        """Return the efforts."""
        error = np.clip(target, self._low, self._high) - data.qpos[self._q]
        effort = self.kp * error - self.kd * data.qvel[self._v]
        return np.clip(effort, -self.limit, self.limit)

    def reset(self) -> None:
        """Nothing to forget."""


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


class PoseSequencer:
    """Goes from pose to pose, smoothly, in simulated time.

    Its ways are `3 s^2 - 2 s^3` of the time s that has passed, from 0 to 1: they begin and end at
    rest. It hands its targets on to another control law.

    Args:
        actuators: those of the robot.
        poses: where to go, one after the other.
        law: turns targets into controls; None takes them as they are.
        loop: whether to begin again at the end.

    Raises:
        ValueError: there is no pose, or a time is negative.
        KeyError: a pose names an actuator that is not there.
    """

    name = "sequence"

    def __init__(
        self,
        actuators: RobotActuators,
        poses: tuple[Pose, ...],
        law: Controller | None = None,
        loop: bool = True,
    ) -> None:
        if not poses:
            raise ValueError("A sequence needs at least one pose.")
        for pose in poses:
            if min(pose.blend, pose.hold) < 0.0:
                raise ValueError(f"Times of pose '{pose.name}' must not be negative: {pose}.")
        self._indices = [actuators.indices(pose.targets) for pose in poses]
        self._values = [np.array(list(pose.targets.values()), float) for pose in poses]
        self.poses = poses
        self.loop = loop
        self._law = law or Passthrough()
        self.reset()

    @property
    def pose(self) -> int:
        """Which pose it is at, or on the way to."""
        return self._pose

    def go_to(self, pose: int) -> None:
        """Begin the way to a pose from where the robot is now."""
        if not 0 <= pose < len(self.poses):
            raise ValueError(f"There is no pose {pose}: there are {len(self.poses)}.")
        self._pose, self._since, self._start = pose, None, self._last

    def reset(self) -> None:
        """Begin again."""
        self._pose = 0
        self._since: float | None = None
        self._start: np.ndarray | None = None
        self._last: np.ndarray | None = None
        self._law.reset()

    def compute(self, model: mujoco.MjModel, data: mujoco.MjData, target: np.ndarray) -> np.ndarray:
        """Return the controls on the way between poses."""
        if self._start is None:
            self._start = target.copy()
        if self._since is None:
            self._since = data.time
        pose = self.poses[self._pose]
        elapsed = data.time - self._since
        s = 1.0 if elapsed >= pose.blend else elapsed / pose.blend
        goal = self._start.copy()
        goal[self._indices[self._pose]] = self._values[self._pose]
        self._last = self._start + (3.0 * s * s - 2.0 * s**3) * (goal - self._start)
        if elapsed >= pose.blend + pose.hold and (self.loop or self._pose + 1 < len(self.poses)):
            # What is over of the last pose counts for the next, so that no time is lost.
            self._since += pose.blend + pose.hold
            self._start, self._pose = goal, (self._pose + 1) % len(self.poses)
        return self._law.compute(model, data, self._last)


def _joint(model: mujoco.MjModel, name: str, actuator: int) -> int:
    """The hinge or slide that an actuator acts on."""
    transmission = mujoco.mjtTrn(model.actuator_trntype[actuator])
    joint = int(model.actuator_trnid[actuator, 0])
    if transmission not in _ON_JOINTS or mujoco.mjtJoint(model.jnt_type[joint]) not in _AXES:
        raise ValueError(
            f"Actuator '{name}' does not act on a hinge or a slide, so that a PD controller cannot "
            "move it: use the passthrough controller."
        )
    return joint
