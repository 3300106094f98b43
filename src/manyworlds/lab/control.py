"""Who may move a robot, what it was told, and why it does not move."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import mujoco
import numpy as np

from manyworlds.lab.controllers import Controller, Passthrough, RobotActuators
from manyworlds.lab.snapshot import Snapshot

NOBODY = "nobody"
"""The owner of a robot whose actuators rest."""
PANEL = "panel"
"""The owner of robots that the page steers."""
POLICY = "policy"
"""The owner of robots that a policy steers."""

_NEVER = -1.0
_SLEEP = int(mujoco.mjtEnableBit.mjENBL_SLEEP)
_OLD_S = 1.0  # older commands are worth a word


@dataclass(frozen=True)
class TargetCommand:
    """What an owner told a robot last."""

    targets: np.ndarray
    """One number for each actuator; it never changes."""
    time: float
    """Simulated time when it was told [s]; below zero if nobody has told it anything yet."""


class RobotControl:
    """The controls of one robot: its owner, what it was told, and its control law.

    Everybody may write; only what the owner wrote counts. Targets are swapped as a whole, so that
    the loop never sees half of a command.

    Args:
        name: the robot's.
        actuators: where its actuators are.
        neutral: what its actuators are told when nobody says anything.
    """

    def __init__(self, name: str, actuators: RobotActuators, neutral: np.ndarray) -> None:
        self.name = name
        self.actuators = actuators
        self.controller: Controller = Passthrough()
        self.enabled = True
        """Whether the control law counts; else controls are what the robot is told."""
        self.neutral = neutral.copy()
        self.owner = NOBODY
        self.ignored: dict[str, int] = {}
        """How many commands of others than the owner were left aside, by who wrote them."""
        self._lock = threading.Lock()
        self._now = 0.0
        self._command = TargetCommand(self.neutral.copy(), _NEVER)
        self.asleep = False
        """Whether MuJoCo has put its bodies to sleep."""

    @property
    def command(self) -> TargetCommand:
        """What counts at present."""
        return self._command

    def take(self, owner: str) -> str:
        """Make somebody the owner; return who was it. Targets stay until he writes."""
        with self._lock:
            before, self.owner = self.owner, owner
            self.ignored.pop(owner, None)
        return before

    def release(self, owner: str) -> None:
        """Give the robot up; nothing happens unless `owner` has it."""
        with self._lock:
            if self.owner == owner:
                self.owner = NOBODY

    def write(self, owner: str, targets: np.ndarray | Mapping[str, float]) -> bool:
        """Tell the robot what to do.

        Args:
            owner: who says so.
            targets: a number for each actuator, or for those named; the others keep theirs.

        Returns:
            Whether it counts: whether `owner` has the robot.

        Raises:
            ValueError: there are too many numbers or too few, or one is not finite.
            KeyError: there is no such actuator.
        """
        indices: list[int] | slice = slice(None)
        values = targets
        if isinstance(targets, Mapping):
            indices = self.actuators.indices(targets)
            values = list(targets.values())  # type: ignore[assignment]
        numbers = np.asarray(values, float)
        expected = len(indices) if isinstance(indices, list) else len(self.neutral)
        if numbers.shape != (expected,):
            raise ValueError(
                f"'{self.name}' has {len(self.neutral)} actuators, got targets of shape "
                f"{numbers.shape}: give one number for each, or a mapping by name."
            )
        if not np.isfinite(numbers).all():
            raise ValueError(f"Targets of '{self.name}' must be finite, got {numbers.tolist()}.")
        with self._lock:
            if owner != self.owner:
                self.ignored[owner] = self.ignored.get(owner, 0) + 1
                return False
            fresh = self._command.targets.copy()
            fresh[indices] = numbers
            fresh.flags.writeable = False
            self._command = TargetCommand(fresh, self._now)
        return True

    def rebuild(
        self, model: mujoco.MjModel, actuators: RobotActuators, neutral: np.ndarray
    ) -> bool:
        """Go on in a model that was built anew: actuators of the same name keep their targets.

        Returns:
            Whether the control law goes on, too; else controls are what the robot is told.
        """
        with self._lock:
            told = dict(zip(self.actuators.names, self._command.targets, strict=True))
            self.actuators, self.neutral = actuators, neutral.copy()
            rest = zip(actuators.names, neutral.tolist(), strict=True)
            targets = np.array([told.get(name, value) for name, value in rest], float)
            targets.flags.writeable = False
            self._command = TargetCommand(targets, self._command.time)
        try:
            law = self.controller.rebuilt(model, actuators)
        except (ValueError, KeyError):
            law = None
        self.controller = law or Passthrough()
        return law is not None

    def reset(self) -> None:
        """Forget what it was told; the owner stays."""
        self._now = 0.0
        self.restore(self.neutral, _NEVER)
        self.controller.reset()

    def restore(self, targets: np.ndarray, time: float | None = None) -> None:
        """Tell the robot what it was told once, whoever has it now.

        Args:
            targets: a number for each actuator.
            time: when it was told that [s]; None is now.
        """
        targets = targets.copy()
        targets.flags.writeable = False
        with self._lock:
            self._command = TargetCommand(targets, self._now if time is None else time)

    def apply(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Write the controls of the robot's actuators; in the physics thread."""
        self._now = data.time
        ctrl = self._command.targets
        if self.enabled:
            ctrl = self.controller.compute(model, data, ctrl)
        self.asleep = bool(model.opt.enableflags & _SLEEP) and self._sleeps(data)
        data.ctrl[self.actuators.ids] = ctrl

    def saturated(self, model: mujoco.MjModel, snapshot: Snapshot) -> list[str]:
        """Names of actuators that are told more than they can do, or push as hard as they can."""
        ids, actuators = self.actuators.ids, self.actuators.actuator_ids
        ctrl, force = snapshot.ctrl[ids], snapshot.actuator_force[actuators]
        low, high = model.actuator_ctrlrange[ids].T
        weakest, strongest = model.actuator_forcerange[actuators].T
        full = (model.actuator_ctrllimited[ids] == 1) & ((ctrl < low) | (ctrl > high))
        limited = model.actuator_forcelimited[actuators] == 1
        full |= limited & ((force <= weakest) | (force >= strongest))
        return np.array(self.actuators.names)[full].tolist()

    def reasons(self, model: mujoco.MjModel, snapshot: Snapshot) -> list[str]:
        """Say in plain words what of its controls keeps the robot from moving."""
        reasons = []
        steered = self.enabled and self.controller.owner == self.owner
        told, age = self._command.time >= 0.0, snapshot.time - self._command.time
        if self.owner == NOBODY:
            reasons.append("nobody steers it")
        elif not steered and not told:
            reasons.append(f"'{self.owner}' has it and has told it nothing yet")
        elif not steered and age > _OLD_S and self.owner != PANEL:  # sliders stand still
            reasons.append(f"the last command of '{self.owner}' is {age:.1f} s old")
        for who, count in self.ignored.items():
            reasons.append(f"{count} commands of '{who}' were ignored: '{self.owner}' has it")
        if names := self.saturated(model, snapshot):
            reasons.append(f"actuators at their limits: {', '.join(names)}")
        gains = getattr(self.controller, "kp", None)
        if self.enabled and gains is not None and not gains.any():
            reasons.append("all its gains are zero")
        if self.asleep:
            reasons.append("its bodies sleep")
        return reasons

    def _sleeps(self, data: mujoco.MjData) -> bool:
        trees = self.actuators.trees
        return bool(len(trees)) and bool((data.tree_asleep[trees] >= 0).all())


class RobotControls:
    """The controls of all robots.

    Args:
        robots: by name.
    """

    def __init__(self, robots: Mapping[str, RobotControl]) -> None:
        self._robots = dict(robots)

    def __getitem__(self, name: str) -> RobotControl:
        """A robot's controls.

        Raises:
            KeyError: there is no such robot.
        """
        if name not in self._robots:
            known = ", ".join(self._robots) or "none"
            raise KeyError(f"There is no robot '{name}'; available: {known}.")
        return self._robots[name]

    def find(self, name: str) -> RobotControl | None:
        """A robot's controls, or None if it has none."""
        return self._robots.get(name)

    def __iter__(self) -> Iterator[RobotControl]:
        return iter(self._robots.values())

    def reset(self) -> None:
        """Let all robots forget what they were told."""
        for robot in self:
            robot.reset()
