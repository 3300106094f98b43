"""A program that runs a control graph in Python's MuJoCo, by the rules that the page follows."""

from typing import Any

import mujoco
import numpy as np
import onnxruntime

from manyworlds.rl.plain_rays import ray_distances


class GraphDriver:
    """Runs a control graph in one world.

    Args:
        model: the compiled model of the folder's world.
        graph: the ONNX file, as bytes or path.
        about: the policy's entry in `world.json`.
    """

    def __init__(self, model: mujoco.MjModel, graph: Any, about: Any) -> None:
        self.model = model
        self.about = about
        self.session = onnxruntime.InferenceSession(graph)
        self.commands = {
            item["command"]: np.zeros(item["size"])
            for item in about["inputs"]
            if item["kind"] == "command"
        }
        self.reset(None)

    def reset(self, data: mujoco.MjData | None, keyframe: str | None = "init_state") -> None:
        """Set the memories to their start, and `data` to the keyframe."""
        self.memory = {}
        for item in self.about["inputs"]:
            if item["kind"] == "memory":
                start = np.zeros(item["shape"])
                if item["start"] is not None:
                    start = np.array(item["start"])
                self.memory[item["name"]] = start.reshape(item["shape"]).astype(item["dtype"])
        if data is not None:
            mujoco.mj_resetData(self.model, data)
            if keyframe is not None:
                mujoco.mj_resetDataKeyframe(self.model, data, self.model.key(keyframe).id)
            mujoco.mj_step1(self.model, data)

    def step(self, data: mujoco.MjData, decimation: int) -> None:
        """Advance by one control period."""
        for substep in range(decimation):
            if substep == 0 or self.about["calls"] == "substep":
                self.control(data, begins=substep == 0)
            mujoco.mj_step(self.model, data)
        mujoco.mj_step1(self.model, data)

    def control(self, data: mujoco.MjData, begins: bool = True) -> None:
        """Run the graph once, and write what it computes."""
        feed = {item["name"]: self._fed(item, data, begins) for item in self.about["inputs"]}
        names = [item["name"] for item in self.about["outputs"]]
        for item, value in zip(self.about["outputs"], self.session.run(names, feed), strict=True):
            if item["kind"] == "memory":
                self.memory[item["input"]] = value
            else:
                getattr(data, item["field"])[item["indices"]] = np.asarray(value)[0]

    def _fed(self, item: Any, data: mujoco.MjData, begins: bool) -> np.ndarray:
        if item["kind"] == "memory":
            return self.memory[item["name"]]
        if item["kind"] == "data":
            value = getattr(data, item["field"])
        elif item["kind"] == "command":
            value = self.commands[item["command"]]
        elif item["kind"] == "velocity":
            value = np.zeros(6)
            kind = mujoco.mju_str2Type(item["object"])
            row = mujoco.mj_name2id(self.model, kind, item["id"])
            mujoco.mj_objectVelocity(self.model, data, kind, row, value, 1)
        elif item["kind"] == "rays":
            value = ray_distances(self.model, data, item["rays"])
        else:
            assert item["kind"] == "begin"
            value = np.array([float(begins)])
        return np.array(value, float).reshape(1, -1)
