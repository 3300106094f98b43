"""Motion in the file of a tracking policy, for plain MuJoCo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import mujoco
import numpy as np

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

    from manyworlds.rl.policy_description import ExportedDescription, TrackingNetworkDescription


class PlainMotion:
    """Frames of a motion to track; after the last frame, the motion stays there.

    Args:
        about: the motion's part of the policy's description.
        arrays: joint and body quantities by name, one row per frame.
        joints: names of the robot's joints in the model.
        prefix: prefix of the names of the robot's bodies in the model.
    """

    def __init__(
        self,
        about: TrackingNetworkDescription,
        arrays: dict[str, np.ndarray],
        joints: list[str],
        prefix: str,
    ) -> None:
        self.command_name: str = about["motion_command"]
        self._prefix = prefix
        self._bodies: list[str] = about["body_names"]
        self.anchor_row = self._bodies.index(about["anchor_body_name"])
        """Row of the anchor among the tracked bodies."""
        self.anchor_body = prefix + about["anchor_body_name"]
        """Name of the anchor in the model."""
        self.arrays = arrays
        """Quantities by name, one row per frame."""
        self.joints = joints
        """Names of the robot's joints in the model."""

    @classmethod
    def of(
        cls,
        session: InferenceSession,
        description: ExportedDescription,
        renamed: Mapping[str, str],
    ) -> PlainMotion | None:
        """Read the motion from a policy; None if it does not track one.

        Args:
            session: the policy's network.
            description: the policy's description.
            renamed: prefixes of names in the model, by those of training, where they differ.
        """
        if "motion_command" not in description["policy"]:
            return None
        about = cast("TrackingNetworkDescription", description["policy"])
        width = session.get_inputs()[0].shape[1]
        steps = np.arange(about["motion_frames"], dtype=np.float32)[:, None]
        obs = np.zeros((len(steps), width), np.float32)
        names = [node.name for node in session.get_outputs()][1:]
        arrays = session.run(names, {"obs": obs, "time_step": steps})
        robot = description["entities"][about["motion_entity"]]
        trained = f"{about['motion_entity']}/"
        named = dict(zip(names, map(np.asarray, arrays), strict=True))
        return cls(about, named, robot["joint_names"], renamed.get(trained, trained))

    def frame(self, name: str, time_step: int) -> np.ndarray:
        """Return a quantity in one frame by name; its shape is that of the policy's output."""
        rows = self.arrays[name]
        return rows[min(time_step, len(rows) - 1)]

    def command(self, time_step: int) -> np.ndarray:
        """Joint positions and velocities of the motion, shape [2 * joints]."""
        return np.concatenate([self.frame(n, time_step) for n in ("joint_pos", "joint_vel")])

    def joint_positions(self, names: list[str], time_step: int) -> np.ndarray:
        """Return positions of the given joints in the motion [rad or m], shape [len(names)]."""
        return self.frame("joint_pos", time_step)[[self.joints.index(name) for name in names]]

    def anchor(
        self, model: mujoco.MjModel, data: mujoco.MjData, time_step: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the motion's anchor relative to the robot's: position [m] and rotation matrix.

        The position has shape [3], the matrix shape [3, 3].
        """
        body = model.body(self.anchor_body).id
        matrix = np.zeros(9)
        actual = data.xmat[body].reshape(3, 3)
        quat = self.frame("body_quat_w", time_step)[self.anchor_row].astype(float)
        mujoco.mju_quat2Mat(matrix, quat)
        offset = self.frame("body_pos_w", time_step)[self.anchor_row] - data.xpos[body]
        return actual.T @ offset, actual.T @ matrix.reshape(3, 3)

    def put(self, model: mujoco.MjModel, data: mujoco.MjData, time_step: int) -> None:
        """Set the robot's state to a frame; its root only if the root is tracked."""
        for name, position, velocity in zip(
            self.joints,
            self.frame("joint_pos", time_step),
            self.frame("joint_vel", time_step),
            strict=True,
        ):
            joint = model.joint(name)
            data.qpos[joint.qposadr], data.qvel[joint.dofadr] = position, velocity
        for i, body in enumerate(self._bodies):
            start = model.body(self._prefix + body).jntadr[0]
            if start < 0 or model.jnt_type[start] != mujoco.mjtJoint.mjJNT_FREE:
                continue
            pos, quat, linear, angular = (
                self.frame(f"body_{name}", time_step)[i].astype(float)
                for name in ("pos_w", "quat_w", "lin_vel_w", "ang_vel_w")
            )
            turn = np.zeros(9)
            mujoco.mju_quat2Mat(turn, quat)
            # A free joint's angular velocity is in the body's frame.
            local = turn.reshape(3, 3).T @ angular
            q = model.jnt_qposadr[start]
            v = model.jnt_dofadr[start]
            data.qpos[q : q + 7], data.qvel[v : v + 6] = [*pos, *quat], [*linear, *local]
