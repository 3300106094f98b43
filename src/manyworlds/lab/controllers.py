"""Control laws: from what a robot is told to the controls of its actuators."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from manyworlds.spec.elements import joint_of

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
    trees: np.ndarray
    """The kinematic trees whose joints they act on."""

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


class Controller:
    """Computes controls, in the physics thread and before each step."""

    name = "controller"
    owner = ""
    """Who must have the robot for the law to move it by itself; empty if it follows targets."""

    @property
    def base(self) -> Controller:
        """The law that it hands its targets to; itself if it hands them to none."""
        return self

    def compute(self, model: mujoco.MjModel, data: mujoco.MjData, target: np.ndarray) -> np.ndarray:
        """Return the controls of the robot's actuators for what it is told.

        Args:
            model: the model.
            data: the state before the step.
            target: what the owner tells each actuator.
        """
        raise NotImplementedError

    def reset(self) -> None:
        """Forget what was before."""

    def state_dict(self) -> dict[str, Any]:
        """What it remembers, as plain data that JSON holds to the last digit."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Remember what `state_dict` returned."""

    def rebuilt(self, model: mujoco.MjModel, actuators: RobotActuators) -> Controller | None:
        """Return the law for a robot whose model was built anew; None if it cannot go on.

        Raises:
            ValueError: it does not fit the robot any more.
        """
        return None


class Passthrough(Controller):
    """Controls are what the owner says."""

    name = "passthrough"

    def compute(self, model: mujoco.MjModel, data: mujoco.MjData, target: np.ndarray) -> np.ndarray:
        """Return the target."""
        return target

    def rebuilt(self, model: mujoco.MjModel, actuators: RobotActuators) -> Controller:
        """Return itself."""
        return self


class PdController(Controller):
    """Efforts that pull joints to targets: `kp (target - q) - kd v`, limited.

    For actuators whose control is an effort; targets [rad or m] are kept within the joints'
    ranges. Actuators that act on anything but a hinge or a slide are told their targets as they
    are, and a warning names them.

    Args:
        model: the model.
        actuators: those of the robot.
        kp: stiffness, one for all [N m/rad or N/m].
        kd: damping, one for all [N m s/rad or N s/m].
        limit: largest effort [N m or N].

    Raises:
        ValueError: none of the actuators acts on a hinge or a slide.
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
        found = [_joint(model, actuator) for actuator in actuators.actuator_ids.tolist()]
        self._bound = np.array([joint >= 0 for joint in found])
        if not self._bound.all():
            names = ", ".join(np.array(actuators.names)[~self._bound])
            message = (
                f"Actuators that act on no hinge or slide, which PD cannot move: {names}; they "
                "are told their targets as they are."
            )
            if not self._bound.any():
                raise ValueError(f"{message} Use the passthrough controller.")
            warnings.warn(message, stacklevel=2)
        joints = [joint for joint in found if joint >= 0]
        self.actuator_names = tuple(np.array(actuators.names)[self._bound].tolist())
        """The actuators that it moves, in the order of the gains."""
        self._joint_names = [model.joint(joint).name for joint in joints]
        self._q = model.jnt_qposadr[joints]
        self._v = model.jnt_dofadr[joints]
        limited = model.jnt_limited[joints].astype(bool)
        self._low = np.where(limited, model.jnt_range[joints, 0], -np.inf)
        self._high = np.where(limited, model.jnt_range[joints, 1], np.inf)
        shape = len(joints)
        self.kp, self.kd = np.full(shape, float(kp)), np.full(shape, float(kd))
        self.limit = np.full(shape, float(limit))

    @property
    def gains(self) -> dict[str, dict[str, float]]:
        """`kp`, `kd` and `limit` of each actuator that it moves, by its name."""
        rows = zip(self.kp.tolist(), self.kd.tolist(), self.limit.tolist(), strict=True)
        return {
            name: dict(zip(("kp", "kd", "limit"), row, strict=True))
            for name, row in zip(self.actuator_names, rows, strict=True)
        }

    def set_gains(
        self,
        kp: Mapping[str, float] | None = None,
        kd: Mapping[str, float] | None = None,
        limit: Mapping[str, float] | None = None,
    ) -> dict[str, dict[str, float]]:
        """Change gains of the joints or actuators named; the others stay.

        Returns:
            All `gains`, as they are now.

        Raises:
            KeyError: there is no such joint or actuator.
            ValueError: a gain is negative or not finite; then none is changed.
        """
        fresh = {}
        for what, values in (("kp", kp), ("kd", kd), ("limit", limit)):
            array: np.ndarray = getattr(self, what).copy()
            for name, value in (values or {}).items():
                if not 0.0 <= value < np.inf:
                    raise ValueError(
                        f"{what} of '{name}' must be finite and at least 0, got {value}."
                    )
                array[self._find(name)] = value
            fresh[what] = array
        for what, array in fresh.items():
            setattr(self, what, array)
        return self.gains

    def compute(self, model: mujoco.MjModel, data: mujoco.MjData, target: np.ndarray) -> np.ndarray:
        """Return the efforts."""
        wanted = np.clip(target[self._bound], self._low, self._high)
        effort = self.kp * (wanted - data.qpos[self._q]) - self.kd * data.qvel[self._v]
        ctrl = target.copy()
        ctrl[self._bound] = np.clip(effort, -self.limit, self.limit)
        return ctrl

    def rebuilt(self, model: mujoco.MjModel, actuators: RobotActuators) -> PdController:
        """Return one of the same gains, where actuators have the same names."""
        law = PdController(model, actuators)
        for what in ("kp", "kd", "limit"):
            gains = dict(zip(self.actuator_names, getattr(self, what), strict=True))
            defaults = zip(law.actuator_names, getattr(law, what), strict=True)
            setattr(law, what, np.array([gains.get(name, value) for name, value in defaults]))
        return law

    def _find(self, name: str) -> list[int]:
        """The actuator of this name, or those of the joint of this name."""
        if name in self.actuator_names:
            return [self.actuator_names.index(name)]
        found = [
            i
            for i, joint in enumerate(self._joint_names)
            if name in (joint, joint.rpartition("/")[2])
        ]
        if not found:
            raise KeyError(
                f"There is no joint or actuator '{name}'; available: "
                f"{', '.join(self.actuator_names)}."
            )
        return found


def _joint(model: mujoco.MjModel, actuator: int) -> int:
    """The hinge or slide that an actuator acts on, or -1."""
    joint = joint_of(model, actuator)
    return joint if joint >= 0 and mujoco.mjtJoint(model.jnt_type[joint]) in _AXES else -1
