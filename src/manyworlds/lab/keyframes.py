"""Poses that a model has stored, for one robot at a time."""

from __future__ import annotations

from typing import Literal

import mujoco

from manyworlds.lab.control import RobotControl
from manyworlds.lab.engine import Handle, PhysicsEngine
from manyworlds.utils.mujoco import dof_width, qpos_width

Root = Literal["keep", "authored"]
"""What becomes of a free root: it stays where it is, or goes where the keyframe says."""

HOLD = "hold"
"""The owner of robots that are held in a keyframe."""


class Keyframes:
    """Puts single robots into the poses of the model's keyframes, and holds them there.

    Args:
        engine: moves the world on.
        prefixes: prefix of each robot's elements, by the robot's name.
    """

    def __init__(self, engine: PhysicsEngine, prefixes: dict[str, str]) -> None:
        self._engine = engine
        self._prefixes = prefixes
        self._held: dict[str, tuple[Handle, str]] = {}

    def names(self, robot: str) -> list[str]:
        """Names of the keyframes, without the robot's prefix."""
        prefix, model = self._prefix(robot), self._engine.model
        names = [model.key(i).name or str(i) for i in range(model.nkey)]
        return [name.removeprefix(prefix) for name in names]

    def reset(self, robot: str, name: str = "", root: Root = "keep") -> None:
        """Put one robot into a keyframe, at rest or as fast as it says; others stay as they are.

        Args:
            robot: the robot.
            name: the keyframe, with or without the robot's prefix; the first if empty.
            root: what becomes of a free root.

        Raises:
            KeyError: there is no such robot, or no such keyframe.
        """
        key = self._find(robot, name)
        self._engine.do(lambda model, data: self._put(model, data, robot, key, root))

    def hold(self, robot: str, name: str = "") -> None:
        """Keep a robot in a keyframe, its free root apart, whatever pulls at it.

        Its joints are put back before each step; with controls of its own in the keyframe, its
        actuators are told these instead.

        Raises:
            KeyError: there is no such robot, or no such keyframe.
        """
        key = self._find(robot, name)
        self.stop_hold(robot)
        model = self._engine.model
        control = self._engine.controls.find(robot)
        owner = control.take(HOLD) if control is not None else ""
        if control is not None and model.key_ctrl[key][control.actuators.ids].any():
            control.write(HOLD, model.key_ctrl[key][control.actuators.ids])
            handle = Handle([], lambda *_: None)
        else:
            handle = self._engine.on_pre_step(
                lambda model, data, moved: self._pin(model, data, robot, key)
            )
        self._held[robot] = handle, owner

    def stop_hold(self, robot: str) -> None:
        """Let a robot go; whoever had it before has it again."""
        if robot not in self._held:
            return
        handle, owner = self._held.pop(robot)
        handle.remove()
        control = self._engine.controls.find(robot)
        if control is not None and control.owner == HOLD:
            control.take(owner)

    def is_holding(self, robot: str) -> bool:
        """Whether a robot is held."""
        return robot in self._held

    def _put(
        self, model: mujoco.MjModel, data: mujoco.MjData, robot: str, key: int, root: Root
    ) -> None:
        self._set_joints(model, data, robot, key, with_root=root == "authored")
        control: RobotControl | None = self._engine.controls.find(robot)
        if control is not None:
            control.restore(model.key_ctrl[key][control.actuators.ids])
        mujoco.mj_forward(model, data)

    def _pin(self, model: mujoco.MjModel, data: mujoco.MjData, robot: str, key: int) -> None:
        self._set_joints(model, data, robot, key, with_root=False, still=True)

    def _set_joints(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        robot: str,
        key: int,
        with_root: bool,
        still: bool = False,
    ) -> None:
        prefix = self._prefix(robot)
        for joint in range(model.njnt):
            kind = mujoco.mjtJoint(model.jnt_type[joint])
            if not model.joint(joint).name.startswith(prefix):
                continue
            if kind == mujoco.mjtJoint.mjJNT_FREE and not with_root:
                continue
            q, v = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
            places, speeds = slice(q, q + qpos_width(kind)), slice(v, v + dof_width(kind))
            data.qpos[places] = model.key_qpos[key][places]
            data.qvel[speeds] = 0.0 if still else model.key_qvel[key][speeds]

    def _find(self, robot: str, name: str) -> int:
        prefix, names = self._prefix(robot), self.names(robot)
        short = name.removeprefix(prefix)
        if names and not name:
            return 0
        if short not in names:
            known = ", ".join(names) or "none"
            raise KeyError(f"There is no keyframe '{name}' of '{robot}'; available: {known}.")
        return names.index(short)

    def _prefix(self, robot: str) -> str:
        if robot not in self._prefixes:
            known = ", ".join(self._prefixes) or "none"
            raise KeyError(f"There is no robot '{robot}'; available: {known}.")
        return self._prefixes[robot]
