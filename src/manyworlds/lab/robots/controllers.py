"""Controllers: from the targets of a robot to the controls of its actuators."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import mujoco
import numpy as np

from manyworlds.spec.elements import joint_of

_AXES = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)


@dataclass(frozen=True)
class RobotActuators:
    """Actuators of one robot, by their place in the model."""

    names: tuple[str, ...]
    """Name of each control, without the robot's prefix; `name[1]` for an actuator's second."""
    ids: np.ndarray
    """Index of each control in `data.ctrl`, ascending, shape [num_controls]."""
    actuator_ids: np.ndarray
    """Id of the actuator of each control, shape [num_controls]."""
    trees: np.ndarray
    """Ids of the kinematic trees whose joints the actuators act on."""

    def indices(self, values: Mapping[str, float]) -> list[int]:
        """Return the indices of the actuators with the given names.

        Raises:
            KeyError: there is no actuator of a given name.
        """
        places = self._places
        for name in values:
            if name not in places:
                raise KeyError(
                    f"There is no actuator '{name}'; available: {', '.join(self.names) or 'none'}."
                )
        return [places[name] for name in values]

    @functools.cached_property
    def _places(self) -> dict[str, int]:
        return dict(zip(reversed(self.names), reversed(range(len(self.names))), strict=True))


class Controller:
    """Computation of a robot's controls, in the physics thread and before each step."""

    name = "controller"
    owner = ""
    """Owner for which the law generates motion by itself; empty if it follows targets."""

    @property
    def base(self) -> Controller:
        """The innermost law, to which this one passes its targets; itself if there is none."""
        return self

    def compute(self, model: mujoco.MjModel, data: mujoco.MjData, target: np.ndarray) -> np.ndarray:
        """Return the controls of the robot's actuators, shape [num_controls].

        Args:
            model: the model.
            data: the state before the step.
            target: the targets that the owner wrote, shape [num_controls].
        """
        raise NotImplementedError

    def reset(self) -> None:
        """Clear the internal state."""

    def state_dict(self) -> dict[str, object]:
        """Return the internal state as plain data that JSON stores without loss."""
        return {}

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Set the internal state that `state_dict` returned."""

    def settings(self) -> Mapping[str, np.ndarray]:
        """Return arrays that users set, by name: `commands`, if it has any, shape [num_values].

        The timeline keeps them, and writes them where the world continues from another moment.
        """
        return getattr(self, "commands", {})

    def rebuilt(self, model: mujoco.MjModel, actuators: RobotActuators) -> Controller | None:
        """Return the law for a rebuilt model of the robot; None if it cannot continue.

        Raises:
            ValueError: it does not fit the robot any more.
        """
        return None


class Passthrough(Controller):
    """Controller whose controls are the targets."""

    name = "passthrough"

    def compute(self, model: mujoco.MjModel, data: mujoco.MjData, target: np.ndarray) -> np.ndarray:
        """Return the targets, shape [num_controls]."""
        return target

    def rebuilt(self, model: mujoco.MjModel, actuators: RobotActuators) -> Controller:
        """Return itself."""
        return self


class PdController(Controller):
    """Effort control of joint positions: `kp (target - q) - kd v`, limited.

    For actuators whose control is an effort; targets [rad or m] are clipped to the joints' ranges.
    The targets of actuators that act on anything but a hinge or slide joint become their controls
    directly, with a warning that names them.

    Args:
        model: the model.
        actuators: actuators of the robot.
        kp: stiffness of all joints [N m/rad or N/m].
        kd: damping of all joints [N m s/rad or N s/m].
        limit: largest effort [N m or N].

    Raises:
        ValueError: none of the actuators acts on a hinge or slide joint.
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
                f"PD cannot control actuators that act on no hinge or slide joint: {names}; their "
                "targets become their controls directly."
            )
            if not self._bound.any():
                raise ValueError(f"{message} Use the passthrough controller.")
            warnings.warn(message, stacklevel=2)
        joints = [joint for joint in found if joint >= 0]
        self.actuator_names = tuple(np.array(actuators.names)[self._bound].tolist())
        """Names of the actuators that it controls, in the order of the gains."""
        self._joint_names = [model.joint(joint).name for joint in joints]
        self._q = model.jnt_qposadr[joints]
        self._v = model.jnt_dofadr[joints]
        limited = model.jnt_limited[joints].astype(bool)
        self._low = np.where(limited, model.jnt_range[joints, 0], -np.inf)
        self._high = np.where(limited, model.jnt_range[joints, 1], np.inf)
        shape = len(joints)
        self.kp = np.full(shape, float(kp))
        self.kd = np.full(shape, float(kd))
        self.limit = np.full(shape, float(limit))

    @property
    def gains(self) -> dict[str, dict[str, float]]:
        """`kp`, `kd` and `limit` of each actuator that it controls, by name."""
        rows = zip(self.kp.tolist(), self.kd.tolist(), self.limit.tolist(), strict=True)
        return {
            name: dict(zip(("kp", "kd", "limit"), row, strict=True))
            for name, row in zip(self.actuator_names, rows, strict=True)
        }

    def settings(self) -> dict[str, np.ndarray]:
        """Return `kp`, `kd` and `limit`, each of shape [num_actuators]."""
        return {"kp": self.kp, "kd": self.kd, "limit": self.limit}

    def set_gains(
        self,
        kp: Mapping[str, float] | None = None,
        kd: Mapping[str, float] | None = None,
        limit: Mapping[str, float] | None = None,
    ) -> dict[str, dict[str, float]]:
        """Change gains by joint or actuator name; the others stay.

        Returns:
            All `gains` after the change.

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
        """Return the efforts, shape [num_controls]."""
        wanted = np.clip(target[self._bound], self._low, self._high)
        effort = self.kp * (wanted - data.qpos[self._q]) - self.kd * data.qvel[self._v]
        ctrl = target.copy()
        ctrl[self._bound] = np.clip(effort, -self.limit, self.limit)
        return ctrl

    def rebuilt(self, model: mujoco.MjModel, actuators: RobotActuators) -> PdController:
        """Return a law with the same gains for actuators of the same names."""
        law = PdController(model, actuators)
        for what in ("kp", "kd", "limit"):
            gains = dict(zip(self.actuator_names, getattr(self, what), strict=True))
            defaults = zip(law.actuator_names, getattr(law, what), strict=True)
            setattr(law, what, np.array([gains.get(name, value) for name, value in defaults]))
        return law

    def _find(self, name: str) -> list[int]:
        """Indices of the actuator of this name, or of those of the joint of this name."""
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
    """Id of the hinge or slide joint that an actuator acts on, or -1."""
    joint = joint_of(model, actuator)
    if joint >= 0 and mujoco.mjtJoint(model.jnt_type[joint]) in _AXES:
        return joint
    return -1
