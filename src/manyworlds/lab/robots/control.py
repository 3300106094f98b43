"""Control of a robot: its owner, its targets, and reasons why it does not move."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.lab.loop.controls import RobotControls
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.robots.controllers import Controller, Passthrough, RobotActuators
from manyworlds.spec.elements import joint_of

if TYPE_CHECKING:
    from manyworlds.lab.robots.driving import DriverInputs
    from manyworlds.lab.world.world import World

NOBODY = "nobody"
"""Owner of a robot that no client controls; its actuators keep their targets."""
PANEL = "panel"
"""Owner of robots that the page's sliders control."""
POLICY = "policy"
"""Owner of robots that a policy controls."""
NET = "net"
"""Owner of robots that clients on the network control."""

_NEVER = -1.0
_SLEEP = int(mujoco.mjtEnableBit.mjENBL_SLEEP)
_OLD_S = 1.0  # age of targets from which they are reported


@dataclass(frozen=True)
class TargetCommand:
    """Latest targets that a robot's owner wrote."""

    targets: np.ndarray
    """Target of each actuator, shape [num_actuators]; never modified."""
    time: float
    """Simulated time at which they were written [s]; negative before the first write."""
    number: int = 0
    """Number of earlier commands of the robot."""


class RobotControl:
    """Controls of one robot: its owner, its targets, and its controller.

    Every client may write targets; only those of the owner take effect. Targets are replaced as a
    whole, so that the loop never reads a partly written command.

    Args:
        name: name of the robot.
        actuators: its actuators in the model.
        neutral: targets before the first write and after a reset, shape [num_actuators].
    """

    def __init__(self, name: str, actuators: RobotActuators, neutral: np.ndarray) -> None:
        self.name = name
        self.actuators = actuators
        self._controller: Controller = Passthrough()
        self.enabled = True
        """True if the controller computes the controls; otherwise the targets are the controls."""
        self.neutral = neutral.copy()
        self.owner = NOBODY
        self.ignored: dict[str, int] = {}
        """Number of ignored commands from clients that are not the owner, by client."""
        self.actions = 0
        """Bit mask of actions that a client has switched on; only published for other programs."""
        self.inputs: DriverInputs | None = None
        """Inputs that `LiveLab.driving` holds for the driver of the robot; None without one."""
        self._lock = threading.Lock()
        self._now = 0.0
        self._command = TargetCommand(self.neutral.copy(), _NEVER)
        self.asleep = False
        """True if MuJoCo has put the robot's bodies to sleep."""

    @property
    def controller(self) -> Controller:
        """Law that turns the owner's targets into controls."""
        return self._controller

    @controller.setter
    def controller(self, law: Controller) -> None:
        if not isinstance(law, Controller):
            raise TypeError(
                f"The controller of '{self.name}' must be an instance of Controller, got {law!r}: "
                "derive your class from manyworlds.lab.Controller."
            )
        self._controller = law

    @property
    def command(self) -> TargetCommand:
        """The present targets."""
        return self._command

    def take(self, owner: str) -> str:
        """Make a client the owner; return the previous one. Targets stay until the first write."""
        with self._lock:
            before, self.owner = self.owner, owner
            self.ignored.pop(owner, None)
        return before

    def release(self, owner: str) -> None:
        """End the ownership of `owner`; does nothing unless it owns the robot."""
        with self._lock:
            if self.owner == owner:
                self.owner = NOBODY

    def write(self, owner: str, targets: np.ndarray | Mapping[str, float]) -> bool:
        """Set targets of the actuators.

        Args:
            owner: the client that writes.
            targets: one number per actuator, or numbers by actuator name; the others keep theirs.

        Returns:
            True if the targets take effect, because `owner` owns the robot.

        Raises:
            ValueError: the number of targets is wrong, or one is not finite.
            KeyError: there is no actuator of a given name.
        """
        return self.put(owner, *self.check(targets))

    def put(self, owner: str, indices: list[int] | slice, numbers: np.ndarray) -> bool:
        """Set targets that `check` has returned; see `write`."""
        with self._lock:
            if owner != self.owner:
                self.ignored[owner] = self.ignored.get(owner, 0) + 1
                return False
            fresh = self._command.targets.copy()
            fresh[indices] = numbers
            fresh.flags.writeable = False
            self._set(fresh, self._now)
        return True

    def check(
        self, targets: np.ndarray | Mapping[str, float]
    ) -> tuple[list[int] | slice, np.ndarray]:
        """Check targets before `write`.

        Returns:
            Places of the targets among the actuators, and the targets in the actuators' units,
            shape [num_targets].

        Raises:
            ValueError: see `write`.
            KeyError: see `write`.
        """
        indices: list[int] | slice = slice(None)
        values = targets
        if isinstance(targets, Mapping):
            indices = self.actuators.indices(targets)
            values = list(targets.values())  # type: ignore[assignment]
        try:
            numbers = np.asarray(values, float)
        except (TypeError, ValueError):
            raise ValueError(f"Targets of '{self.name}' must be numbers, got {values!r}.") from None
        expected = len(indices) if isinstance(indices, list) else len(self.neutral)
        if numbers.shape != (expected,):
            raise ValueError(
                f"'{self.name}' has {len(self.neutral)} actuators, got targets of shape "
                f"{numbers.shape}: give one number for each, or a mapping by name."
            )
        if not np.isfinite(numbers).all():
            raise ValueError(f"Targets of '{self.name}' must be finite, got {numbers.tolist()}.")
        return indices, numbers

    def rebuild(self, model: mujoco.MjModel, actuators: RobotActuators, neutral: np.ndarray) -> str:
        """Continue in a rebuilt model: actuators of the same name keep their targets.

        Returns:
            The reason why the controller does not continue, so that the targets become the
            controls; empty if it continues.
        """
        with self._lock:
            told = dict(zip(self.actuators.names, self._command.targets, strict=True))
            self.actuators = actuators
            self.neutral = neutral.copy()
            rest = zip(actuators.names, neutral.tolist(), strict=True)
            targets = np.array([told.get(name, value) for name, value in rest], float)
            targets.flags.writeable = False
            self._set(targets, self._command.time)
        reason = ""
        law = None
        try:
            law = self.controller.rebuilt(model, actuators)
            if law is None:
                reason = f"'{self.controller.name}' cannot continue in another model"
        except Exception as error:  # of a controller from outside this package
            reason = str(error.args[0] if error.args else error)
        self.controller = law or Passthrough()
        return reason

    def reset(self) -> None:
        """Return to the neutral targets; the owner stays."""
        self._now = 0.0
        self.actions = 0
        self.restore(self.neutral, _NEVER)
        self.controller.reset()

    def restore(self, targets: np.ndarray, time: float | None = None) -> None:
        """Set saved targets, whoever owns the robot.

        Args:
            targets: one number per actuator.
            time: time at which they were written [s]; None is now.
        """
        targets = targets.copy()
        targets.flags.writeable = False
        with self._lock:
            self._set(targets, self._now if time is None else time)

    def apply(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Write the controls of the robot's actuators; runs in the physics thread."""
        self._now = data.time
        ctrl = self._command.targets
        if self.enabled:
            ctrl = self.controller.compute(model, data, ctrl)
        self.asleep = bool(model.opt.enableflags & _SLEEP) and self._sleeps(data)
        data.ctrl[self.actuators.ids] = ctrl

    def saturated(self, model: mujoco.MjModel, snapshot: Snapshot) -> list[str]:
        """Names of actuators whose control exceeds its range, or whose force is at a limit."""
        ids = self.actuators.ids
        actuators = self.actuators.actuator_ids
        ctrl = snapshot.ctrl[ids]
        force = snapshot.actuator_force[actuators]
        low, high = model.actuator_ctrlrange[ids].T
        weakest, strongest = model.actuator_forcerange[actuators].T
        full = (model.actuator_ctrllimited[ids] == 1) & ((ctrl < low) | (ctrl > high))
        limited = model.actuator_forcelimited[actuators] == 1
        full |= limited & ((force <= weakest) | (force >= strongest))
        return np.array(self.actuators.names)[full].tolist()

    def reasons(self, model: mujoco.MjModel, snapshot: Snapshot) -> list[str]:
        """Reasons in the robot's control that keep it from moving, as text."""
        reasons = []
        steered = self.enabled and self.controller.owner == self.owner
        told = self._command.time >= 0.0
        age = snapshot.time - self._command.time
        if self.owner == NOBODY:
            reasons.append("it has no owner")
        elif not steered and not told and self.owner == PANEL:
            reasons.append(f"{self._hold(model)}: move a slider")
        elif not steered and not told:
            reasons.append(f"{self._hold(model)}: '{self.owner}' has sent no targets yet")
        elif not steered and age > _OLD_S and self.owner != PANEL:  # sliders stand still
            reasons.append(f"the last command of '{self.owner}' is {age:.1f} s old")
        for who, count in self.ignored.items():
            reasons.append(f"{count} commands of '{who}' were ignored: '{self.owner}' owns it")
        if names := self.saturated(model, snapshot):
            reasons.append(f"actuators at their limits: {', '.join(names)}")
        gains = getattr(self.controller, "kp", None)
        if self.enabled and gains is not None and not gains.any():
            reasons.append("all its gains are zero")
        if self.asleep:
            reasons.append("its bodies are asleep")
        return reasons

    def _hold(self, model: mujoco.MjModel) -> str:
        """Return what the actuators do with the initial controls, as text."""
        springs = model.actuator_biasprm[self.actuators.actuator_ids, 1] != 0.0
        if springs.any() or (self.enabled and hasattr(self.controller, "kp")):
            return "holding its start pose"
        return "its controls have their initial values, and its actuators hold no position"

    def _set(self, targets: np.ndarray, time: float) -> None:
        """Replace the present targets; the caller holds the lock."""
        self._command = TargetCommand(targets, time, self._command.number + 1)

    def _sleeps(self, data: mujoco.MjData) -> bool:
        trees = self.actuators.trees
        return bool(len(trees)) and bool((data.tree_asleep[trees] >= 0).all())


def controls_of(world: World, data: mujoco.MjData) -> RobotControls:
    """Create the controls of all robots of a world.

    Args:
        world: the world.
        data: its data in the initial state, whose controls are the neutral targets.
    """
    controls = {}
    for name, prefix in world.robots.items():
        own = world.elements.ids(name, "actuator").tolist()
        actuators = _actuators_of(world.model, prefix, own)
        if len(actuators.ids):
            controls[name] = RobotControl(name, actuators, data.ctrl[actuators.ids])
    return RobotControls(controls)


def _actuators_of(model: mujoco.MjModel, prefix: str, own: Sequence[int]) -> RobotActuators:
    """Return the controls of a robot.

    Args:
        model: the model.
        prefix: prefix of the names of its elements.
        own: ids of its actuators.
    """
    names: list[str] = []
    ids: list[int] = []
    actuators: list[int] = []
    trees: set[int] = set()
    for actuator in own:
        name = model.actuator(actuator).name or f"actuator_{actuator}"
        start = int(model.actuator_ctrladr[actuator])
        count = int(model.actuator_ctrlnum[actuator])
        short = name.removeprefix(prefix)
        if count == 1:
            names.append(short)
        else:
            names += [f"{short}[{i}]" for i in range(count)]
        ids += range(start, start + count)
        actuators += [actuator] * count
        joint = joint_of(model, actuator)
        if joint >= 0:
            trees.add(int(model.body_treeid[model.jnt_bodyid[joint]]))
    return RobotActuators(
        tuple(names), np.array(ids, int), np.array(actuators, int), np.array(sorted(trees), int)
    )
