"""Exported policies in plain MuJoCo: one world, from the ONNX file alone."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from manyworlds.rl.double_network import in_double
from manyworlds.rl.plain_actuators import PlainActuators
from manyworlds.rl.plain_joint_tokens import joint_tokens
from manyworlds.rl.plain_motion import PlainMotion
from manyworlds.rl.plain_rays import height_scan
from manyworlds.rl.policy_description import (
    VERSION,
    EntityDescription,
    ExportedDescription,
    NeedsEnvironmentError,
    Params,
)
from manyworlds.sensor.builtin_sensor import ROTATIONS
from manyworlds.sim.gravity import plain_gravity_direction
from manyworlds.utils.extras import require_extra
from manyworlds.utils.newton import avoid_sparse_newton

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

ObservationFn = Callable[["OnnxPolicy", mujoco.MjData, Params], ArrayLike]
"""Function that computes an observation, shape [n], from the policy, the state and its
parameters."""
ActionFn = Callable[["OnnxPolicy", mujoco.MjData, np.ndarray], ArrayLike]
"""Function that changes a term's action, shape [dim], before it is scaled to targets."""

_PLURALS = {"body": "bodies"}


def open_session(path: str | Path, *, double: bool = False) -> InferenceSession:
    """Open an ONNX file for inference in one thread.

    Args:
        path: the file.
        double: compute the network in float64, where ONNX Runtime can; see `in_double`.

    Raises:
        ValueError: the file has another format, or is damaged.
    """
    runtime = require_extra("onnxruntime", "train")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        session = runtime.InferenceSession(str(path), options)
        if not double:
            return session
        network = in_double(require_extra("onnx", "train").load(str(path)))
        return runtime.InferenceSession(network.SerializeToString(), options)
    except Exception as error:  # ONNX Runtime's errors have no common base class
        reason = str(error).rpartition(" : ")[2].rstrip(".")
        raise ValueError(
            f"'{path}' is not a policy in the ONNX format ({reason}): name the policy.onnx of a "
            "run."
        ) from error


class OnnxPolicy:
    """Exported policy that runs in a MuJoCo model with the joints and actuators that it names.

    The model is usually `scene/scene.xml` next to the policy. In each control step, the policy
    observes and infers, and `decimation` physics steps follow with controls computed as by the
    trained actuators. Noise is left out, and randomized delays are set to the middle of their
    range.

    Args:
        path: the ONNX file.
        model: the compiled model; on MuJoCo 4.0.0, its Jacobians may be made dense, as in training.
        observation_fns: functions for terms that are not in `manyworlds.envs.mdp`, by the name of
            the term or of its function.
        commands: values of command terms by name; 0 for the others.
        check_timestep: refuse a model whose timestep differs from the policy's. If False, the
            caller sets the timestep.
        prefix: prefix of the robot's elements in the model, if it is not that of training: `two/`
            for `robot/`, for instance. None takes the names of training.
        double: compute the network in float64 and round its output, so that all machines compute
            the same bits, as the pages of `manyworlds share` do.

    Raises:
        ValueError: the file is not a policy, or its description is missing or of a newer version;
            the model lacks an object that the policy names; a command is unknown, or has another
            number of values than the policy observes.
        NeedsEnvironmentError: a term or an actuator is not supported here.
    """

    def __init__(
        self,
        path: str | Path,
        model: mujoco.MjModel,
        *,
        observation_fns: Mapping[str, ObservationFn] | None = None,
        commands: Mapping[str, ArrayLike] | None = None,
        check_timestep: bool = True,
        prefix: str | None = None,
        double: bool = False,
    ) -> None:
        self.path = Path(path)
        self._session = open_session(path, double=double)
        self.description = read_description(self._session, path)
        avoid_sparse_newton(model)
        self.model = model
        self._renamed: dict[str, str] = {}
        if prefix is not None:
            self._rename(prefix)
        given = {name: np.array(value, float) for name, value in (commands or {}).items()}
        self.commands: dict[str, np.ndarray] = {}
        """Values of command terms by name, which may be changed at any time."""
        self._command_sizes: dict[str, int] = {}
        self._fns = dict(observation_fns or {})
        if check_timestep and not np.isclose(model.opt.timestep, self.timestep, rtol=1e-6):
            raise ValueError(
                f"The model's timestep is {model.opt.timestep}, but the policy was trained with "
                f"{self.timestep}: set model.opt.timestep, or use the scene exported beside it."
            )
        self.entities = self.description["entities"]
        self._check_names()
        self._actuators = PlainActuators(model, self.description)
        self.addresses: dict[str, tuple[int, int]] = {}
        """Address of each joint in `qpos` and in `qvel`, by name."""
        for entity in self.entities.values():
            for name in entity["joint_names"]:
                joint = model.joint(name)
                self.addresses[name] = int(joint.qposadr[0]), int(joint.dofadr[0])
        self._check_terms()
        self._take_commands(given)
        self.motion = PlainMotion.of(self._session, self.description, self._renamed)
        """Motion in the file, for policies that track one."""
        self.reset()

    @property
    def actuator_names(self) -> list[str]:
        """Names of the model's actuators that the policy drives."""
        return [name for item in self.description["actuators"] for name in item["controls"]]

    @property
    def timestep(self) -> float:
        """Timestep of the physics in training [s]."""
        return self.description["physics_timestep_s"]

    @property
    def control_period(self) -> float:
        """Time between two actions [s]."""
        return self.description["control_period_s"]

    def reset(self, data: mujoco.MjData | None = None) -> None:
        """Reset the policy's state; with `data`, also set the initial state of the scene."""
        self.action_slices: dict[str, slice] = {}
        """Elements of the action that belong to each action term, by name."""
        start = 0
        columns: list[int] = []
        for name, term in self.description["actions"].items():
            read = term.get("columns", term["dim"])
            self.action_slices[name] = slice(start, start + read)
            columns += range(start, start + read)
            start += term["dim"]
        self._unread = np.setdiff1d(np.arange(start), columns)
        self.action = np.zeros(start, np.float32)
        """Last action before scaling, shape [action_dim]."""
        self._hidden: dict[str, np.ndarray] = {}
        for node in self._session.get_inputs():
            if node.name not in (*self.description["policy"]["inputs"], "time_step"):
                layers, _, size = node.shape  # of one world
                self._hidden[node.name] = np.zeros((layers, 1, size), np.float32)
        self._histories: dict[str, np.ndarray] = {}
        self._actuators.reset()
        self._go_to_frame(0)
        if data is None:
            return
        key = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_KEY, "init_state")
        if key >= 0:
            mujoco.mj_resetDataKeyframe(self.model, data, key)
        else:
            mujoco.mj_resetData(self.model, data)
        if self.motion is not None:
            self.motion.put(self.model, data, self.time_step)
        self._refresh(data)

    def state_dict(self) -> dict[str, object]:
        """Return the policy's state and commands as plain data, which JSON stores without loss."""
        return {
            "action": self.action.tolist(),
            "time_step": self.time_step,
            "actuators": self._actuators.state_dict(),
            "hidden": {name: value.tolist() for name, value in self._hidden.items()},
            "histories": {name: value.tolist() for name, value in self._histories.items()},
            "commands": {name: value.tolist() for name, value in self.commands.items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load a state that `state_dict` returned."""
        self.action = np.array(state["action"], np.float32)
        for name, value in state["commands"].items():
            self.commands[name][:] = value
        self._go_to_frame(state["time_step"])
        self._actuators.load_state_dict(state["actuators"])
        self._hidden = {n: np.array(v, np.float32) for n, v in state["hidden"].items()}
        self._histories = {n: np.array(v, np.float32) for n, v in state["histories"].items()}

    def act(self, data: mujoco.MjData) -> np.ndarray:
        """Observe and infer; return the action, shape [action_dim]."""
        feed = {name: np.array(value) for name, value in self._hidden.items()}
        if self.motion is not None:
            feed["time_step"] = np.array([[self.time_step]], np.float32)
        for name, groups in self.description["policy"]["inputs"].items():
            feed[name] = np.concatenate([self.observe(data, group) for group in groups])[None]
        outputs = cast("list[np.ndarray]", self._session.run(None, feed))
        names = [node.name for node in self._session.get_outputs()]
        for name, value in zip(names[1:], outputs[1:], strict=True):
            if name.endswith("_out"):
                self._hidden[name.replace("_out", "_in")] = value
        self.action = outputs[0][0]
        bound = self.description["clip_actions"]
        if bound is not None:
            self.action = self.action.clip(-bound, bound)
        self.action[self._unread] = 0.0
        return self.action

    def step(self, data: mujoco.MjData) -> np.ndarray:
        """Act and advance by one control period; return the action, shape [action_dim]."""
        action = self.begin_period(data)
        for _ in range(self.description["decimation"]):
            self.apply(data)
            mujoco.mj_step(self.model, data)
        self.end_period(data)
        return action

    def begin_period(self, data: mujoco.MjData) -> np.ndarray:
        """Start a control period without physics steps; return the action, shape [action_dim].

        The caller then runs `decimation` times `apply` and a physics step, and `end_period`.
        """
        action = self.act(data)
        self._actuators.take(self._processed(data, action), self._offsets())
        return action

    def apply(self, data: mujoco.MjData) -> None:
        """Write `ctrl`; call before each physics step."""
        self._actuators.apply(data)

    def end_period(self, data: mujoco.MjData) -> None:
        """Compute the quantities that the next action depends on."""
        self._refresh(data)
        self._go_to_frame(self.time_step + 1)

    def observe(self, data: mujoco.MjData, group: str) -> np.ndarray:
        """Compute an observation group in the shape of one world; histories advance by one step."""
        described = self.description["observations"][group]
        values = []
        for name, term in described["terms"].items():
            values.append(self._term(data, group, name, term).reshape(term["shape"]))
        return np.concatenate(values, axis=described.get("concatenate_dim", -1))

    def joint_positions(self, data: mujoco.MjData, params: Params) -> np.ndarray:
        """Positions of the joints that a term's parameters select [rad or m], shape [n]."""
        return data.qpos[[self.addresses[name][0] for name in self.joints_of(params)[0]]]

    def position_target(self, joint: str) -> float:
        """Position target of a joint by the last action [rad or m]."""
        return self._actuators.position_target(joint)

    def joints_of(self, params: Params) -> tuple[list[str], EntityDescription]:
        """Return the joints that a term's parameters select, and the entity's description."""
        asset: Params = params.get("asset_cfg") or {"entity": "robot"}
        entity = self.entities[asset["entity"]]
        return asset.get("joint_names", entity["joint_names"]), entity

    def _go_to_frame(self, time_step: int) -> None:
        self.time_step = time_step
        """Current frame of the motion."""
        if self.motion is not None:
            self.commands[self.motion.command_name] = self.motion.command(time_step)

    def _processed(self, data: mujoco.MjData, action: np.ndarray) -> np.ndarray:
        """Return the action as the terms with functions of their own change it."""
        processed = action.copy()
        for name, function in self._action_fns.items():
            part = self.action_slices[name]
            processed[part] = function(self, data, action[part])
        return processed

    def _offsets(self) -> dict[str, np.ndarray]:
        """Return the offsets of actions that are relative to the motion."""
        offsets = {}
        if self.motion is not None:
            for name, action in self._actuators.actions.items():
                if action["type"] == "MotionJointPositionAction":
                    offsets[name] = self.motion.joint_positions(action["targets"], self.time_step)
        return offsets

    def _refresh(self, data: mujoco.MjData) -> None:
        """Compute positions, velocities and their sensors at the new state, as in training."""
        mujoco.mj_step1(self.model, data)

    def _term(self, data: mujoco.MjData, group: str, name: str, term: Params) -> np.ndarray:
        value = np.asarray(self._function(name, term)(self, data, term["params"]), np.float32)
        if term.get("clip") is not None:
            value = value.clip(*term["clip"])
        if term.get("scale") is not None:
            value = value * np.asarray(term["scale"], np.float32)
        lag = (term.get("delay_min_lag", 0) + term.get("delay_max_lag", 0)) // 2
        if lag:
            value = self._remember(f"{group}/{name}/delay", value, lag + 1)[0]
        length = term.get("history_length", 0)
        if length:
            value = self._remember(f"{group}/{name}/history", value, length)
        shape = term.get("pad_to")
        if shape is not None:  # the largest of the buckets that were trained together
            if len(shape) == 1:
                value = value.reshape(-1)
            missing = [(0, b - a) for a, b in zip(value.shape, shape, strict=True)]
            value = np.pad(value, missing)
        return value.astype(np.float32)

    def _remember(self, key: str, value: np.ndarray, length: int) -> np.ndarray:
        """Return the last values, oldest first; the first value fills the whole history."""
        rows = self._histories.setdefault(key, np.repeat(value[None], length, axis=0))
        rows[:-1] = rows[1:]
        rows[-1] = value
        return rows

    def _function(self, name: str, term: Params) -> ObservationFn:
        """Return the function that computes a term.

        Raises:
            NeedsEnvironmentError: there is none.
        """
        module, _, function = term["function"].rpartition(":")
        # A term may have the name of a built-in function and be computed by another one.
        known = {**module_forms(module, "PLAIN_OBSERVATION_FNS"), **OBSERVATION_FNS, **self._fns}
        found = self._fns.get(name) or known.get(function)
        if found is _height_scan and "rays" not in term["params"]:
            found = None  # the sensor's samples are held or delayed, or have code of their own
        if found is None:
            raise NeedsEnvironmentError(
                f"Observation term '{name}' of '{self.path}' is computed by {term['function']}, "
                "which plain MuJoCo does not provide: pass observation_fns={"
                f"'{name}': function}} with function(policy, data, params) -> array of shape "
                f"{tuple(term['shape'])}, or define PLAIN_OBSERVATION_FNS in the task's module, "
                "which must be imported (`manyworlds play`: --load FILE)."
            )
        return found

    def _action_function(self, name: str, described: str) -> ActionFn:
        """Return the function that changes a term's actions.

        Raises:
            NeedsEnvironmentError: the module of the term is not imported.
        """
        module, _, kind = described.rpartition(":")
        found = module_forms(module, "PLAIN_ACTION_FNS").get(kind)
        if found is None:
            raise NeedsEnvironmentError(
                f"Action term '{name}' of '{self.path}' is a {described}, whose plain form is in "
                "PLAIN_ACTION_FNS of that module: import it (`manyworlds play`: --load FILE)."
            )
        return found

    def _rename(self, prefix: str) -> None:
        """Give the elements of the entity that the policy moves another prefix, if it fits.

        Raises:
            ValueError: the policy observes a sensor that is not the entity's own.
        """
        entities = {item["entity"] for item in self.description["actuators"]}
        if len(entities) != 1:
            return
        [robot] = entities
        trained = f"{robot}/"
        if trained == prefix:
            return
        for name in self.actuator_names:
            if not self._has("actuator", prefix + name.removeprefix(trained)):
                return
        for name, term in self._observed_terms():
            sensor = term["params"].get("sensor_name", trained)
            read = [sensor]
            if "rays" in term["params"]:
                read = [frame["name"] for frame in term["params"]["rays"]["frames"]]
            if not all(element.startswith(trained) for element in read):
                raise ValueError(
                    f"Observation term '{name}' of '{self.path}' reads the sensor '{sensor}' of "
                    f"the scene, not of the robot: the policy controls only the robot '{robot}' "
                    "of its own scene."
                )
        described: Any = self.description
        self.description = _replace_prefix(described, trained, prefix)
        self._renamed[trained] = prefix

    def _observed_terms(self) -> Iterator[tuple[str, Params]]:
        """Yield name and description of each observation term that the network sees."""
        for groups in self.description["policy"]["inputs"].values():
            for group in groups:
                yield from self.description["observations"][group]["terms"].items()

    def _has(self, kind: str, name: str) -> bool:
        """Return whether the model has an element of a kind, such as "joint"."""
        code = mujoco.mju_str2Type(kind)
        return mujoco.mj_name2id(self.model, code, name) >= 0

    def _check_names(self) -> None:
        """Raise an error that lists all objects that the description names and the model lacks."""
        wanted = {
            "joint": [n for entity in self.entities.values() for n in entity["joint_names"]],
            "actuator": self.actuator_names,
        }
        for item in self.description["actuators"]:
            wanted.setdefault(item["transmission"], []).extend(item["targets"])
        for _, term in self._observed_terms():
            for frame in term["params"].get("rays", {"frames": []})["frames"]:
                wanted.setdefault(frame["type"], []).append(frame["name"])
                if frame["exclude"] is not None:
                    wanted.setdefault("body", []).append(frame["exclude"])
        lacks = []
        for kind, names in wanted.items():
            missing = [name for name in names if not self._has(kind, name)]
            if missing:
                lacks.append(
                    f"{_PLURALS.get(kind, kind + 's')} {', '.join(dict.fromkeys(missing))}"
                )
        if lacks:
            raise ValueError(
                f"The model lacks what '{self.path}' names: {'; '.join(lacks)}. Use the scene "
                "exported beside the policy."
            )

    def _check_terms(self) -> None:
        """Find the function of each term, and the commands with their sizes."""
        for name, size in self.description.get("command_sizes", {}).items():
            self.commands[name] = np.zeros(size)
            self._command_sizes[name] = size
        self._action_fns: dict[str, ActionFn] = {}
        for name, action in self.description["actions"].items():
            if "function" in action:
                self._action_fns[name] = self._action_function(name, action["function"])
        for name, term in self._observed_terms():
            function = self._function(name, term)
            command = term["params"].get("command_name")
            if not command:
                continue
            size = term["shape"][-1]
            if term.get("history_length") and term.get("flatten_history_dim", True):
                size //= term["history_length"]
            if function is _generated_commands:  # others may have another size
                self.commands[command] = np.zeros(size)
                self._command_sizes[command] = size
            self.commands.setdefault(command, np.zeros(size))

    def _take_commands(self, given: dict[str, np.ndarray]) -> None:
        """Set the values of command terms; refuse those that do not fit the policy."""
        trained = self._session.get_modelmeta().custom_metadata_map.get("command_names", "")
        known = dict.fromkeys([*self.commands, *filter(None, trained.split(","))])
        for name, value in given.items():
            if name not in known:
                raise ValueError(
                    f"The policy '{self.path}' has no command '{name}'; it has: "
                    f"{', '.join(known) or 'none'}."
                )
            size = self._command_sizes.get(name)
            if size is not None and value.shape != (size,):
                raise ValueError(
                    f"The command '{name}' of the policy '{self.path}' has {size} values, got an "
                    f"array of shape {value.shape}: give {size} numbers."
                )
            self.commands[name] = value


def _replace_prefix(plain: Any, old: str, new: str) -> Any:
    """Return plain data in which all values that begin with a prefix begin with another one."""
    if isinstance(plain, dict):
        return {name: _replace_prefix(value, old, new) for name, value in plain.items()}
    if isinstance(plain, list):
        return [_replace_prefix(value, old, new) for value in plain]
    if isinstance(plain, str) and plain.startswith(old):
        return new + plain.removeprefix(old)
    return plain


def read_description(session: InferenceSession, path: str | Path) -> ExportedDescription:
    """Read the description in a policy's file.

    Raises:
        ValueError: there is none, or one of a newer version.
    """
    text = session.get_modelmeta().custom_metadata_map.get("manyworlds", "{}")
    description: Any = json.loads(text)
    if description.get("version", VERSION + 1) > VERSION:
        raise ValueError(
            f"'{path}' has a description of version {description.get('version')}, but this release "
            f"reads versions up to {VERSION}: export the policy with `manyworlds train`, or update "
            "manyworlds."
        )
    return description


def module_forms(module: str, name: str) -> dict[str, Callable[..., ArrayLike]]:
    """Return a dict of functions in a module of this package, or in one that is loaded already.

    Other modules are not imported, because a policy's file must not run arbitrary code.

    Args:
        module: name of the module.
        name: name of the dict, such as `PLAIN_OBSERVATION_FNS`.
    """
    if module.startswith("manyworlds."):
        importlib.import_module(module)
    return getattr(sys.modules.get(module), name, {})


def _joint_pos_rel(policy: OnnxPolicy, data: mujoco.MjData, params: Params) -> np.ndarray:
    names, entity = policy.joints_of(params)
    default = dict(zip(entity["joint_names"], entity["default_joint_pos"], strict=True))
    return policy.joint_positions(data, params) - [default[name] for name in names]


def _joint_vel_rel(policy: OnnxPolicy, data: mujoco.MjData, params: Params) -> np.ndarray:
    names, entity = policy.joints_of(params)
    default = dict(zip(entity["joint_names"], entity["default_joint_vel"], strict=True))
    velocities = [data.qvel[policy.addresses[name][1]] - default[name] for name in names]
    return np.array(velocities)


def _root_velocity(part: slice) -> ObservationFn:
    def function(policy: OnnxPolicy, data: mujoco.MjData, params: Params) -> np.ndarray:
        velocity = np.zeros(6)  # angular, then linear
        body = policy.model.body(policy.joints_of(params)[1]["root_body"]).id
        kind = mujoco.mjtObj.mjOBJ_XBODY
        mujoco.mj_objectVelocity(policy.model, data, kind, body, velocity, 1)
        return velocity[part]

    return function


def _projected_gravity(policy: OnnxPolicy, data: mujoco.MjData, params: Params) -> np.ndarray:
    body = policy.model.body(policy.joints_of(params)[1]["root_body"]).id
    return data.xmat[body].reshape(3, 3).T @ plain_gravity_direction(policy.model.opt)


def _height_scan(policy: OnnxPolicy, data: mujoco.MjData, params: Params) -> np.ndarray:
    options = {name: params[name] for name in ("offset", "miss_value") if name in params}
    return height_scan(policy.model, data, params["rays"], **options)


def _joint_tokens(policy: OnnxPolicy, data: mujoco.MjData, params: Params) -> np.ndarray:
    names, entity = policy.joints_of(params)
    targets = [policy.position_target(name) for name in names]
    return joint_tokens(policy.model, data, entity, names, targets)


def _last_action(policy: OnnxPolicy, data: mujoco.MjData, params: Params) -> np.ndarray:
    name = params.get("action_name")
    if name is None:
        return policy.action
    return policy.action[policy.action_slices[name]]


def _action_mask(policy: OnnxPolicy, data: mujoco.MjData, params: Params) -> np.ndarray:
    mask = np.zeros_like(policy.action)
    for name, term in policy.description["actions"].items():
        mask[policy.action_slices[name]][: len(cast("Params", term)["targets"])] = 1.0
    return mask


def _generated_commands(policy: OnnxPolicy, data: mujoco.MjData, params: Params) -> np.ndarray:
    return policy.commands[params["command_name"]]


def _builtin_sensor(policy: OnnxPolicy, data: mujoco.MjData, params: Params) -> np.ndarray:
    return data.sensor(params["sensor"]).data


def _projected_gravity_from_sensor(
    policy: OnnxPolicy, data: mujoco.MjData, params: Params
) -> np.ndarray:
    model = policy.model
    sensor = model.sensor(params["sensor"]).id
    rotations = getattr(data, ROTATIONS[mujoco.mjtObj(model.sensor_reftype[sensor])])
    rotation = rotations[model.sensor_refid[sensor]].reshape(3, 3)
    return rotation.T @ plain_gravity_direction(model.opt)


OBSERVATION_FNS: dict[str, ObservationFn] = {
    "action_mask": _action_mask,
    "base_ang_vel": _root_velocity(slice(0, 3)),
    "base_lin_vel": _root_velocity(slice(3, 6)),
    "builtin_sensor": _builtin_sensor,
    "generated_commands": _generated_commands,
    "height_scan": _height_scan,
    "joint_pos_rel": _joint_pos_rel,
    "joint_tokens": _joint_tokens,
    "joint_vel_rel": _joint_vel_rel,
    "last_action": _last_action,
    "projected_gravity": _projected_gravity,
    "projected_gravity_from_sensor": _projected_gravity_from_sensor,
}
"""Observation functions by name, for those of `manyworlds.envs.mdp`."""
