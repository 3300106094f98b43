"""One ONNX graph from what MuJoCo holds to `ctrl`, as plain playback computes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Required, TypedDict, cast

import mujoco
import numpy as np

from manyworlds.actuator.targets import COMMAND_FIELDS
from manyworlds.rl.double_network import in_double
from manyworlds.rl.onnx_policy import OnnxPolicy, module_forms
from manyworlds.rl.policy_description import (
    ActuatorDescription,
    ExportedDescription,
    Params,
    TargetActionDescription,
)
from manyworlds.sensor.raycast_sensor import RaysDescription
from manyworlds.share.laws import LAWS
from manyworlds.share.observation_forms import OBSERVATION_FORMS
from manyworlds.share.values import OPSET, Graph, Value
from manyworlds.utils.extras import require_extra

if TYPE_CHECKING:
    from onnx import ModelProto

GraphFn = Callable[["ControlGraph", Params], Value]
"""Function that adds an observation term to a graph; returns a value of shape [n]."""
GraphActionFn = Callable[["ControlGraph", Value], Value]
"""Function that adds the change of a term's action, shape [dim], before it is scaled."""

_RELATIVE = "RelativeJointPositionAction"


class InputDescription(TypedDict, total=False):
    """What the program that runs a graph feeds into an input."""

    name: str
    kind: Required[str]
    """`data`: a field of MjData; `velocity`: `mj_objectVelocity`; `rays`: distances of rays;
    `command`: a command's values; `begin`: 1 in the first physics step of a control period, else 0;
    `memory`: the output of the last call."""
    field: str
    object: str
    id: str
    frame: str
    sensor: str
    rays: object
    command: str
    size: int
    start: list[object] | None
    shape: list[int]
    dtype: str


class OutputDescription(TypedDict, total=False):
    """Where the program that runs a graph writes an output."""

    name: str
    kind: str
    """`data`: a field of MjData; `memory`: the input of the next call."""
    field: str
    indices: list[int] | None
    input: str


class GraphInterface(TypedDict):
    """When to run a graph, and what goes in and out."""

    calls: str
    """`control`: once per control period; `substep`: before each physics step."""
    inputs: list[InputDescription]
    outputs: list[OutputDescription]


def check_forms(description: ExportedDescription, path: object) -> None:
    """Raise an error that names all terms of a policy that a graph cannot compute.

    Args:
        description: the policy's description.
        path: the policy's file, for the error.

    Raises:
        ValueError: the policy observes images, or a term or an actuator has no form in ONNX.
    """
    images = []
    lacking = []
    for groups in description["policy"]["inputs"].values():
        for group in groups:
            for name, term in description["observations"][group]["terms"].items():
                if len(term["shape"]) >= 3:
                    images.append(name)
                elif term.get("pad_to") is not None:
                    lacking.append(f"observation '{name}' (padded among buckets)")
                elif _observation_form(term) is None:
                    lacking.append(f"observation '{name}' ({term['function']})")
    if images:
        raise ValueError(
            f"The policy '{path}' observes images ({', '.join(images)}), which a shared page does "
            "not draw: share a policy that observes numbers."
        )
    for name, action in description["actions"].items():
        if "columns" in action:
            lacking.append(f"action '{name}' (padded among buckets)")
        module, _, kind = action.get("function", "").rpartition(":")
        if "command" not in action or (
            kind and kind not in module_forms(module, "ONNX_ACTION_FNS")
        ):
            lacking.append(f"action '{name}' ({action['type']})")
    lacking += [
        f"actuator of {', '.join(item['targets'])} ({item['type']})"
        for item in description["actuators"]
        if item["commands"] is None and item["type"] not in LAWS
    ]
    if lacking:
        raise ValueError(
            f"The policy '{path}' has terms without a form in ONNX: {'; '.join(lacking)}; define "
            "ONNX_OBSERVATION_FNS or ONNX_ACTION_FNS in the task's module (docs/share.md)."
        )


def _observation_form(term: Params) -> GraphFn | None:
    """Return the function that adds a term to a graph, or None."""
    module, _, function = term["function"].rpartition(":")
    known: dict[str, Any] = {**module_forms(module, "ONNX_OBSERVATION_FNS"), **OBSERVATION_FORMS}
    if function == "height_scan" and "rays" not in term["params"]:
        return None  # the sensor's samples are held or delayed, or have code of their own
    return known.get(function)


class ControlGraph(Graph):
    """Graph that computes the controls of a policy: observations, network, actions, actuators.

    It computes what `OnnxPolicy` with `double` computes, in the same types of numbers. Fields of
    MjData are its inputs, flattened, in float64 and of shape [1, n]; what the policy remembers goes
    in and out.

    Args:
        policy: the policy in the model that the graph is for.

    Raises:
        ValueError: see `check_forms`.
    """

    def __init__(self, policy: OnnxPolicy) -> None:
        super().__init__()
        check_forms(policy.description, policy.path)
        self.policy = policy
        self.model = policy.model
        self._data = mujoco.MjData(policy.model)
        self._fed: dict[str, Value] = {}
        self._descriptions: list[InputDescription] = []
        self._memories: dict[str, Value] = {}
        self._next: dict[str, Value] = {}
        onnx = require_extra("onnx", "share")
        self._network = in_double(onnx.load(str(policy.path)))
        versions = [item.version for item in self._network.opset_import if not item.domain]
        if versions != [OPSET]:
            raise ValueError(
                f"The policy '{policy.path}' has operators of ONNX's version {versions[0]}, but "
                f"shared pages need {OPSET}: export it again from its checkpoint."
            )

    # What MuJoCo holds, for the functions of terms.

    def data(self, field: str) -> Value:
        """Return a field of MjData in float64, in its shape there."""
        shape = np.shape(getattr(self._data, field))
        fed = self._feed(field, int(np.prod(shape)), {"kind": "data", "field": field})
        return fed.reshape(*shape)

    def position(self, kind: str, name: str) -> Value:
        """Return the position of a body, site, geom or camera in the world frame [m], shape [3]."""
        field, row = self._frame(kind, name, "pos")
        return self.data(field)[row]

    def axes(self, kind: str, name: str) -> Value:
        """Return the rotation matrix of a body, site, geom or camera, shape [3, 3]."""
        field, row = self._frame(kind, name, "mat")
        return self.data(field)[row].reshape(3, 3)

    def velocity(self, kind: str, name: str) -> Value:
        """Return angular and linear velocity in the object's own frame, shape [6]."""
        about: InputDescription = {"kind": "velocity", "object": kind, "id": name, "frame": "local"}
        return self._feed(f"velocity/{kind}/{name}", 6, about).reshape(6)

    def positions(self, joints: Sequence[str]) -> Value:
        """Return positions of joints with one coordinate [rad or m], shape [len(joints)]."""
        return self.data("qpos")[[self.policy.addresses[name][0] for name in joints]]

    def velocities(self, joints: Sequence[str]) -> Value:
        """Return velocities of joints with one coordinate, shape [len(joints)]."""
        return self.data("qvel")[[self.policy.addresses[name][1] for name in joints]]

    def joint_positions(self, params: Params) -> Value:
        """Return positions of the joints that a term's parameters select, shape [n]."""
        return self.positions(self.policy.joints_of(params)[0])

    def command(self, name: str) -> Value:
        """Return the values of a command term, shape [n]."""
        motion = self.policy.motion
        if motion is not None and name == motion.command_name:
            return self.concat([self.motion("joint_pos"), self.motion("joint_vel")])
        size = self.policy.commands[name].size
        about: InputDescription = {
            "kind": "command",
            "command": name,
            "size": size,
            "dtype": "float64",
        }
        return self._feed(f"command/{name}", size, about).reshape(size)

    def rays(self, sensor: str, rays: RaysDescription) -> Value:
        """Return distances along the rays of a sensor, -1 for misses [m], shape [num_rays]."""
        count = len(rays["frames"]) * len(rays["offsets"])
        about: InputDescription = {"kind": "rays", "sensor": sensor, "rays": rays}
        return self._feed(f"rays/{sensor}", count, about).reshape(count)

    def last_action(self) -> Value:
        """Return the action of the last control period before scaling, shape [action_dim]."""
        return self.memory("action", np.zeros(self.policy.action.size, np.float32))

    def motion(self, name: str, row: int | None = None) -> Value:
        """Return a quantity of the motion in the present frame in float64, shape [n].

        Args:
            name: name of the quantity, one of the policy's outputs.
            row: row of the body, for quantities of bodies.
        """
        motion = self.policy.motion
        assert motion is not None
        step = self.memory("time_step", np.zeros(1, np.int64))
        frames = motion.arrays[name]
        if row is not None:
            frames = frames[:, row]
        table = self.constant(frames, np.float32)
        return table[step.minimum(len(frames) - 1)].reshape(table.shape[1]).astype(float)

    # What a policy remembers.

    def memory(self, name: str, start: np.ndarray) -> Value:
        """Return a value that an earlier call has computed, or `start` at the first call."""
        if name not in self._memories:
            plain = None
            if np.any(start):
                plain = start.tolist()
            about: InputDescription = {
                "name": f"memory/{name}",
                "kind": "memory",
                "start": plain,
                "shape": list(start.shape),
                "dtype": str(start.dtype),
            }
            self._descriptions.append(about)
            self._memories[name] = self.input(about["name"], start.shape, start.dtype)
        return self._memories[name]

    def remember(self, name: str, value: Value) -> None:
        """Set the value that `memory` returns in the next call."""
        self._next[name] = value

    def add(self) -> GraphInterface:
        """Add all that the policy computes; return how to run the graph."""
        calls = "control"
        if self._follows_physics():
            calls = "substep"
            targets = self._targets_at_begin()
        else:
            targets = self._control_period()
        table = _TargetTable(self, targets)
        controls = []
        for number, item in enumerate(self.policy.description["actuators"]):
            controls.append(self._controls(number, item, table))
        ids = [self.model.actuator(name).id for name in self.policy.actuator_names]
        indices = self.model.actuator_ctrladr[ids].tolist()
        ctrl = self.concat(controls).astype(float)
        self.output("ctrl", ctrl.reshape(1, len(indices)))
        outputs: list[OutputDescription] = [
            {"name": "ctrl", "kind": "data", "field": "ctrl", "indices": indices}
        ]
        for name, value in self._next.items():
            self.output(f"next/{name}", value)
            outputs.append({"name": f"next/{name}", "kind": "memory", "input": f"memory/{name}"})
        return {"calls": calls, "inputs": self._descriptions, "outputs": outputs}

    def finished(self) -> ModelProto:
        """Return the ONNX model."""
        return self.build("control", self._network.ir_version)

    def _follows_physics(self) -> bool:
        """Return whether controls change between the physics steps of a control period."""
        for item in self.policy.description["actuators"]:
            if item["commands"] is None or (_lag(item) and item["delay"]["commands"]):
                return True
        actions = self.policy.description["actions"].values()
        return any(action["type"] == _RELATIVE for action in actions)

    def _targets_at_begin(self) -> Value:
        """Compute targets in the first physics step of a control period, and keep them."""
        begin = self._feed("begin", 1, {"kind": "begin", "dtype": "float64"})
        size = self.policy.action.size
        kept = self.memory("targets", np.zeros(size, np.float32))

        def period() -> dict[str, Value]:
            targets = self._control_period()
            return {"targets": targets, **self._next}

        self._next = self.when(begin.reshape(1) > 0.5, period, self._memories)
        assert kept.shape == self._next["targets"].shape
        return self._next["targets"]

    def _control_period(self) -> Value:
        """Observe, infer, and return the targets of all actions in order, shape [action_dim]."""
        action = self._infer()
        parts = []
        for name, term in self.policy.description["actions"].items():
            part = action[self.policy.action_slices[name]]
            parts.append(self._processed(cast("TargetActionDescription", term), part))
        if "action" in self._memories:
            self.remember("action", action)
        if "time_step" in self._memories:
            self.remember("time_step", self._memories["time_step"] + 1)
        return self.concat(parts)

    def _infer(self) -> Value:
        """Return the action before scaling, shape [action_dim]."""
        inputs = {}
        for node in self._network.graph.input:
            groups = self.policy.description["policy"]["inputs"].get(node.name)
            if groups is not None:
                values = self.concat([self._observe(group) for group in groups])
                inputs[node.name] = values.reshape(1, *values.shape)
            elif node.name == "time_step":
                step = self.memory("time_step", np.zeros(1, np.int64))
                inputs[node.name] = step.astype(np.float32).reshape(1, 1)
            else:  # of a recurrent network, in one world
                dims = [dim.dim_value or 1 for dim in node.type.tensor_type.shape.dim]
                inputs[node.name] = self.memory(node.name, np.zeros(dims, np.float32))
        names = self.inline(self._network, "network/", inputs)
        for name, inner in names.items():
            kept = name.replace("_out", "_in")
            if name.endswith("_out") and kept in inputs:
                self.remember(kept, Value(self, inner, inputs[kept].shape, np.float32))
        size = self.policy.action.size
        first = next(iter(names.values()))
        action = Value(self, first, (1, size), np.float32).reshape(size)
        bound = self.policy.description["clip_actions"]
        if bound is not None:
            action = action.clip(-bound, bound)
        return action

    def _observe(self, group: str) -> Value:
        described = self.policy.description["observations"][group]
        values = []
        for name, term in described["terms"].items():
            values.append(self._term(f"{group}/{name}", term).reshape(*term["shape"]))
        return self.concat(values, axis=described.get("concatenate_dim", -1))

    def _term(self, key: str, term: Params) -> Value:
        form = _observation_form(term)
        assert form is not None  # see `check_forms`
        value = form(self, term["params"]).astype(np.float32)
        if term.get("clip") is not None:
            value = value.clip(*term["clip"])
        if term.get("scale") is not None:
            value = value * term["scale"]
        lag = (term.get("delay_min_lag", 0) + term.get("delay_max_lag", 0)) // 2
        if lag:
            value = self._last_values(f"{key}/delay", value, lag + 1)[0]
        length = term.get("history_length", 0)
        if length:
            value = self._last_values(f"{key}/history", value, length)
        return value

    def _last_values(self, key: str, value: Value, length: int) -> Value:
        """Return the last values, oldest first; the first value fills the whole history."""
        row = value.reshape(1, *value.shape)
        filled = self.memory("filled", np.zeros(1, np.int64))
        rows = self.memory(key, np.zeros((length, *value.shape), np.float32))
        shifted = row
        if length > 1:
            shifted = self.concat([rows[1:], row])
        rows = self.where(filled > 0, shifted, self.concat([row] * length))
        self.remember(key, rows)
        self.remember("filled", self.constant([1], np.int64))
        return rows

    def _processed(self, term: TargetActionDescription, action: Value) -> Value:
        """Scale, offset and clip an action to targets, shape [dim]."""
        if "function" in term:
            module, _, kind = term["function"].rpartition(":")
            form = cast("GraphActionFn", module_forms(module, "ONNX_ACTION_FNS")[kind])
            action = form(self, action).astype(np.float32)
        offset = self.constant(term["offset"], np.float32)
        motion = self.policy.motion
        if term["type"] == "MotionJointPositionAction" and motion is not None:
            rows = [motion.joints.index(name) for name in term["targets"]]
            offset = self.motion("joint_pos")[rows].astype(np.float32)
        target = offset + action * term["scale"]
        if term["clip"] is not None:
            low, high = np.array(term["clip"], np.float32)  # NaN for None
            low = np.nan_to_num(low, nan=-np.inf)
            high = np.nan_to_num(high, nan=np.inf)
            target = target.clip(low, high)
        return target

    def _controls(self, number: int, item: ActuatorDescription, table: _TargetTable) -> Value:
        """Return the controls of an actuator, shape [n]."""
        lag = _lag(item)
        cmd = {}
        for field in item["commands"] or COMMAND_FIELDS:
            cmd[field] = table.targets(field, item["targets"])
            if lag and field in item["delay"]["commands"]:
                start = np.tile(table.start(field, item["targets"]), (lag, 1))
                late = self.memory(f"late/{number}/{field}", start)
                rows = self.concat([late, cmd[field].reshape(1, cmd[field].shape[0])])
                self.remember(f"late/{number}/{field}", rows[1:])
                cmd[field] = rows[0]
        if item["commands"] is not None:
            joined = self.concat([cmd[field] for field in item["commands"]])
            return joined * item.get("ctrl_per_target", 1.0)
        params = {}
        for name, values in item["params"].items():
            params[name] = np.nan_to_num(np.array(values, np.float32), nan=np.inf)  # NaN for None
        fields = ("qpos", "qvel")
        rows = None
        if item["transmission"] == "joint":
            ids = [self.model.joint(name).id for name in item["targets"]]
            rows = self.model.jnt_qposadr[ids], self.model.jnt_dofadr[ids]
        else:
            fields = ("ten_length", "ten_velocity")
            ids = [self.model.tendon(name).id for name in item["targets"]]
            rows = ids, ids
        pos, vel = (
            self.data(field)[at].astype(np.float32) for field, at in zip(fields, rows, strict=True)
        )
        return LAWS[item["type"]](params, cmd, pos, vel)

    def _feed(self, name: str, size: int, about: InputDescription) -> Value:
        """Return an input that the program that runs the graph fills, shape [1, size]."""
        if name not in self._fed:
            key = name
            if about["kind"] == "data":
                key = f"data/{name}"
            self._descriptions.append({"name": key, **about})
            self._fed[name] = self.input(key, (1, size), float)
        return self._fed[name]

    def _frame(self, kind: str, name: str, what: str) -> tuple[str, int]:
        """Return the field of MjData with the frames of a kind of objects, and the row of one."""
        prefix = {"body": "x", "site": "site_x", "geom": "geom_x", "camera": "cam_x"}[kind]
        return prefix + what, int(getattr(self.model, kind)(name).id)


class _TargetTable:
    """Targets of all actuators by quantity and element.

    Args:
        graph: the graph.
        targets: targets of all actions in order, shape [action_dim].
    """

    def __init__(self, graph: ControlGraph, targets: Value) -> None:
        policy = graph.policy
        self._start: dict[tuple[str, str], float] = {}
        for item in policy.description["actuators"]:
            positions = item.get("start_positions", [])
            for name, position in zip(item["targets"], positions, strict=False):
                self._start["position", name] = position
        rows: dict[tuple[str, str], int] = {}
        relative: dict[str, int] = {}
        for key, term in policy.description["actions"].items():
            described = cast("TargetActionDescription", term)
            first = policy.action_slices[key].start
            for row, name in enumerate(described["targets"], first):
                if term["type"] == _RELATIVE:
                    relative[name] = row
                else:
                    rows[described["command"], name] = row
        values = [targets]
        if relative:
            change = targets[list(relative.values())].astype(float)
            values.append((graph.positions(list(relative)) + change).astype(np.float32))
            for row, name in enumerate(relative, targets.shape[0]):
                rows["position", name] = row
        self._graph = graph
        self._values = graph.concat(values)
        self._rows = rows

    def start(self, field: str, names: Sequence[str]) -> np.ndarray:
        """Return the targets at the beginning of an episode, shape [len(names)]."""
        return np.array([self._start.get((field, name), 0.0) for name in names], np.float32)

    def targets(self, field: str, names: Sequence[str]) -> Value:
        """Return the present targets of a quantity, shape [len(names)]."""
        start = self._graph.constant(self.start(field, names), np.float32)
        rows = [self._rows.get((field, name)) for name in names]
        if all(row is None for row in rows):
            return start
        count = self._values.shape[0]
        known = [count + i if row is None else row for i, row in enumerate(rows)]
        return self._graph.concat([self._values, start])[known]


def _lag(item: ActuatorDescription) -> int:
    """Return the delay of an actuator [physics steps], the middle of its range."""
    return (item["delay"]["min_lag"] + item["delay"]["max_lag"]) // 2
