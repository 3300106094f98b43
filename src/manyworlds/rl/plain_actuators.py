"""Conversion of a policy's action to `ctrl` of one `MjData`, as by the trained actuators."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, cast

import mujoco
import numpy as np
import torch

from manyworlds.actuator.actuator import ActuatorCmd
from manyworlds.actuator.dc_actuator import DcMotorActuator
from manyworlds.actuator.pd_actuator import IdealPdActuator
from manyworlds.actuator.targets import COMMAND_FIELDS
from manyworlds.rl.policy_description import (
    ActuatorDescription,
    NeedsEnvironmentError,
    PolicyDescription,
    TargetActionDescription,
)

_LAWS = {cls.__name__: cls.control_law for cls in (IdealPdActuator, DcMotorActuator)}


class PlainActuators:
    """Actuators that scale actions to targets, delay them, and convert them to controls.

    Args:
        model: the compiled model.
        description: result of `describe_policy`.

    Raises:
        KeyError: the model lacks a target or an actuator.
        NeedsEnvironmentError: an action or an actuator is of a kind that is not supported here.
    """

    def __init__(self, model: mujoco.MjModel, description: PolicyDescription) -> None:
        self._model = model
        self._actuators = [_PlainActuator(model, item) for item in description["actuators"]]
        for name, action in description["actions"].items():
            if "command" not in action:
                raise NeedsEnvironmentError(
                    f"Action term '{name}' is a {action['type']}, which plain MuJoCo cannot run: "
                    "use a joint, tendon or site action, or run the policy in its environment."
                )
        self.actions = cast("dict[str, TargetActionDescription]", description["actions"])
        """Descriptions of the action terms by name."""
        self.reset()

    def reset(self) -> None:
        """Set targets to where they are at the beginning of an episode, and forget delayed ones."""
        self._targets: dict[tuple[str, str], float] = {}
        for actuator in self._actuators:
            self._targets |= actuator.start
        self._relative: dict[str, float] = {}
        for actuator in self._actuators:
            actuator.reset(self._targets)

    def state_dict(self) -> dict[str, object]:
        """Return targets and delayed targets as plain data."""
        return {
            "targets": [[*key, value] for key, value in self._targets.items()],
            "relative": dict(self._relative),
            "late": [actuator.plain_late() for actuator in self._actuators],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load a state that `state_dict` returned."""
        self._targets = {(field, name): value for field, name, value in state["targets"]}
        self._relative = dict(state["relative"])
        for actuator, rows in zip(self._actuators, state["late"], strict=True):
            actuator.late.clear()
            for row in rows:
                actuator.late.append({field: torch.tensor(v) for field, v in row.items()})

    def take(self, action: np.ndarray, offsets: Mapping[str, np.ndarray] | None = None) -> None:
        """Scale, offset and clip an action, once per control step.

        Args:
            action: unprocessed action, shape [action_dim].
            offsets: current offsets of terms whose offsets change, by name.
        """
        start = 0
        for name, term in self.actions.items():
            raw = action[start : start + len(term["targets"])].astype(np.float32)
            start += term["dim"]
            offset = (offsets or {}).get(name, term["offset"])
            target = np.asarray(offset, np.float32) + raw * np.asarray(term["scale"], np.float32)
            if term["clip"] is not None:
                low, high = np.array(term["clip"], np.float32)  # NaN for None
                low = np.nan_to_num(low, nan=-np.inf)
                high = np.nan_to_num(high, nan=np.inf)
                target = target.clip(low, high)
            values = dict(zip(term["targets"], target.tolist(), strict=True))
            if term["type"] == "RelativeJointPositionAction":
                self._relative |= values
            else:
                self._targets |= {(term["command"], name): v for name, v in values.items()}

    def position_target(self, name: str) -> float:
        """Return the position target of a joint or tendon [rad or m]; 0 if none was set."""
        return self._targets.get(("position", name), 0.0)

    def apply(self, data: mujoco.MjData) -> None:
        """Write `ctrl`; call before each physics step."""
        for name, offset in self._relative.items():
            position = float(data.qpos[self._model.joint(name).qposadr[0]])
            self._targets["position", name] = position + offset
        for actuator in self._actuators:
            actuator.apply(data, self._targets)


class _PlainActuator:
    def __init__(self, model: mujoco.MjModel, item: ActuatorDescription) -> None:
        self._model = model
        self._item = item
        self._law = _LAWS.get(item["type"])
        if item["commands"] is None and self._law is None:
            raise NeedsEnvironmentError(
                f"The actuator of {item['targets']} is a {item['type']}, whose control law is not "
                "available in plain MuJoCo: run the policy in its environment."
            )
        ids = [model.actuator(name).id for name in item["controls"]]
        self._controls = model.actuator_ctrladr[ids]
        find = {"joint": model.joint, "tendon": model.tendon, "site": model.site}
        self._is_of_joints = item["transmission"] == "joint"
        self._elements = [find[item["transmission"]](name).id for name in item["targets"]]
        lag = (item["delay"]["min_lag"] + item["delay"]["max_lag"]) // 2
        positions = item.get("start_positions", [])
        self.start = {("position", n): x for n, x in zip(item["targets"], positions, strict=False)}
        """Targets at the beginning of an episode that are not zero."""
        self.late: deque[dict[str, torch.Tensor]] = deque(maxlen=lag + 1)
        """Delayed targets, oldest first."""
        self._params: dict[str, torch.Tensor] = {}
        for name, values in item["params"].items():
            values = np.nan_to_num(np.array(values, np.float32), nan=np.inf)  # NaN for None
            self._params[name] = torch.from_numpy(values)

    def reset(self, targets: dict[tuple[str, str], float]) -> None:
        """Fill the delay with the first targets, as an environment's reset does."""
        self.late.clear()
        self.late.append(self._command(targets))

    def plain_late(self) -> list[dict[str, list[float]]]:
        """Return the delayed targets as plain data."""
        return [{field: v.tolist() for field, v in row.items()} for row in self.late]

    def _command(self, targets: dict[tuple[str, str], float]) -> dict[str, torch.Tensor]:
        names = self._item["targets"]
        return {f: torch.tensor([targets.get((f, n), 0.0) for n in names]) for f in COMMAND_FIELDS}

    def apply(self, data: mujoco.MjData, targets: dict[tuple[str, str], float]) -> None:
        """Write the controls."""
        cmd = self._command(targets)
        self.late.append(cmd)
        cmd = cmd | {field: self.late[0][field] for field in self._item["delay"]["commands"]}
        if self._law is None:
            ctrl = torch.cat([cmd[field] for field in self._item["commands"] or ()])
            ctrl = ctrl * torch.tensor(self._item.get("ctrl_per_target", 1.0))
        else:
            if self._is_of_joints:
                pos = data.qpos[self._model.jnt_qposadr[self._elements]]
                vel = data.qvel[self._model.jnt_dofadr[self._elements]]
            else:
                pos = data.ten_length[self._elements]
                vel = data.ten_velocity[self._elements]
            ctrl = self._law(
                self._params,
                ActuatorCmd(
                    position_target=cmd["position"],
                    velocity_target=cmd["velocity"],
                    effort_target=cmd["effort"],
                    pos=torch.tensor(pos).float(),
                    vel=torch.tensor(vel).float(),
                ),
            )
        data.ctrl[self._controls] = ctrl.numpy()
