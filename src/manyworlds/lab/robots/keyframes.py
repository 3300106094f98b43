"""Keyframes of the model, applied to one robot at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import mujoco
import numpy as np

from manyworlds.lab.loop.callbacks import Handle
from manyworlds.lab.loop.physics_loop import PhysicsLoop, WorldEdit
from manyworlds.lab.robots.control import RobotControl
from manyworlds.lab.robots.controllers import Controller
from manyworlds.lab.world.elements import RobotElements
from manyworlds.lab.world.model_facts import element_names, robot_of
from manyworlds.spec.elements import dof_width, qpos_width

Root = Literal["keep", "placed", "authored"]
"""Pose of a free root: unchanged (`keep`), that of the initial state (`placed`), or that of the
keyframe (`authored`)."""

HOLD = "hold"
"""Owner of robots that are held in a keyframe."""


class HeldController(Controller):
    """Fixed controls of a robot while `hold` owns it; targets of other owners pass to its law.

    Args:
        robot: controls of the robot.
        targets: controls to hold, shape [num_controls]; None passes the targets to the law, as
            without hold.
    """

    name = owner = HOLD

    def __init__(self, robot: RobotControl, targets: np.ndarray | None) -> None:
        self.law = robot.controller
        self._robot = robot
        self._targets = targets

    @property
    def base(self) -> Controller:
        """The innermost controller of the robot."""
        return self.law.base

    def compute(self, model: mujoco.MjModel, data: mujoco.MjData, target: np.ndarray) -> np.ndarray:
        """Return the controls, shape [num_controls]."""
        if self._targets is not None and self._robot.owner == HOLD:
            return self._targets
        return self.law.compute(model, data, target)

    def reset(self) -> None:
        """Reset the law."""
        self.law.reset()

    def state_dict(self) -> dict[str, object]:
        """Return the internal state of the law."""
        return self.law.state_dict()

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Set the internal state of the law."""
        self.law.load_state_dict(state)


@dataclass(frozen=True)
class _Hold:
    """Hold of one robot."""

    handle: Handle | None
    """Callback that sets the joints; None if controls hold them."""
    owner: str
    """Owner of the robot before."""
    keyframe: str
    """Name of the keyframe without the robot's prefix."""


class Keyframes:
    """Sets single robots to the model's keyframes, and holds them there.

    Args:
        loop: loop of the world.
        elements: elements of the model by the robot that they belong to.
        reset_data: function that puts data into the initial state.
    """

    def __init__(self, loop: PhysicsLoop, elements: RobotElements, reset_data: WorldEdit) -> None:
        self._loop = loop
        self._elements = elements
        self._reset_data = reset_data
        self._held: dict[str, _Hold] = {}
        self.before_put: WorldEdit = lambda model, data: None
        """Called by `reset` and `hold` in the physics thread, before the state changes."""

    def names(self, robot: str) -> list[str]:
        """Names of the robot's keyframes without its prefix, then of those of no robot."""
        return list(self._keys(robot))

    def reset(self, robot: str, name: str = "", root: Root = "keep") -> None:
        """Set the positions and velocities of one robot to a keyframe; the others do not change.

        A replay ends, because it would overwrite them: the others stay at the frame that it shows.

        Args:
            robot: name of the robot.
            name: name of the keyframe, with or without the robot's prefix; the first one if empty.
            root: pose of a free root.

        Raises:
            KeyError: there is no such robot, or no such keyframe.
        """
        key = self._find(robot, name)

        def put(model: mujoco.MjModel, data: mujoco.MjData) -> None:
            self.before_put(model, data)
            self._put(model, data, robot, key, root)

        self._loop.do(put, edits_model=False)

    def hold(self, robot: str, name: str = "") -> None:
        """Keep the joints of a robot, except a free root, at a keyframe against all forces.

        The joints are set before each step; if the keyframe has controls, they replace the
        targets of the actuators. A replay ends.

        Raises:
            KeyError: there is no such robot, or no such keyframe.
        """
        key = self._find(robot, name)
        self._loop.do(self.before_put, edits_model=False)
        self.stop_hold(robot)
        model = self._loop.model
        control = self._loop.controls.find(robot)
        owner = ""
        ctrl = None
        if control is not None:
            wanted = model.key_ctrl[key][control.actuators.ids].copy()
            if wanted.any():
                ctrl = wanted
            control.controller = HeldController(control, ctrl)
            owner = control.take(HOLD)
        handle = None
        if ctrl is None:
            handle = self._loop.on_pre_step(
                lambda model, data, moved: self._pin(model, data, robot, key)
            )
        name = model.key(key).name or str(key)
        self._held[robot] = _Hold(handle, owner, name.removeprefix(self._elements.prefix(robot)))

    @property
    def held(self) -> dict[str, str]:
        """Names of the keyframes at which robots are held, by robot."""
        return {robot: hold.keyframe for robot, hold in self._held.items()}

    def hold_again(self, held: Mapping[str, str]) -> list[str]:
        """Hold robots as in a world that this one replaces; return why others are not, as text."""
        lost = []
        for robot, name in held.items():
            try:
                self.hold(robot, name)
            except KeyError as error:
                lost.append(f"'{robot}' is held no longer: {error.args[0]}")
        return lost

    def stop_hold(self, robot: str) -> None:
        """Stop holding a robot; the previous owner owns it again."""
        if robot not in self._held:
            return
        hold = self._held.pop(robot)
        if hold.handle is not None:
            hold.handle.remove()
        control = self._loop.controls.find(robot)
        if control is None:
            return
        if isinstance(control.controller, HeldController):
            control.controller = control.controller.law
        if control.owner == HOLD:
            control.take(hold.owner)

    def is_holding(self, robot: str) -> bool:
        """Return True if a robot is held; False while another client owns it."""
        control = self._loop.controls.find(robot)
        return robot in self._held and (control is None or control.owner == HOLD)

    def _put(
        self, model: mujoco.MjModel, data: mujoco.MjData, robot: str, key: int, root: Root
    ) -> None:
        start = None
        if root == "placed":
            start = mujoco.MjData(model)
            self._reset_data(model, start)
        self._set_joints(model, data, robot, key, root, start)
        control: RobotControl | None = self._loop.controls.find(robot)
        if control is not None:
            control.restore(model.key_ctrl[key][control.actuators.ids])
            for actuator in set(control.actuators.actuator_ids.tolist()):
                first, count = model.actuator_actadr[actuator], model.actuator_actnum[actuator]
                if count:
                    act = slice(first, first + count)
                    data.act[act] = model.key_act[key][act]
        mujoco.mj_forward(model, data)

    def _pin(self, model: mujoco.MjModel, data: mujoco.MjData, robot: str, key: int) -> None:
        if self.is_holding(robot):
            self._set_joints(model, data, robot, key, "keep", still=True)

    def _set_joints(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        robot: str,
        key: int,
        root: Root,
        start: mujoco.MjData | None = None,
        still: bool = False,
    ) -> None:
        for joint in self._elements.ids(robot, "jnt").tolist():
            kind = mujoco.mjtJoint(model.jnt_type[joint])
            free = kind == mujoco.mjtJoint.mjJNT_FREE
            if free and root == "keep":
                continue
            q, v = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
            places = slice(q, q + qpos_width(kind))
            speeds = slice(v, v + dof_width(kind))
            if free and start is not None:
                data.qpos[places] = start.qpos[places]
                data.qvel[speeds] = start.qvel[speeds]
                continue
            data.qpos[places] = model.key_qpos[key][places]
            data.qvel[speeds] = 0.0 if still else model.key_qvel[key][speeds]

    def _find(self, robot: str, name: str) -> int:
        prefix = self._elements.prefix(robot)
        keys = self._keys(robot)
        short = name.removeprefix(prefix)
        if not name and keys:
            short = next(iter(keys))
        if short not in keys:
            known = ", ".join(keys) or "none"
            raise KeyError(f"There is no keyframe '{name}' of '{robot}'; available: {known}.")
        return keys[short]

    def _keys(self, robot: str) -> dict[str, int]:
        """Ids of the robot's keyframes by name without prefix, then of those of no robot."""
        prefix = self._elements.prefix(robot)
        own = {}
        shared = {}
        for key, name in enumerate(element_names(self._loop.model, "key")):
            name = name or str(key)
            owner = robot_of(name, self._elements.robots)
            if owner == robot:
                own[name.removeprefix(prefix)] = key
            elif owner is None or not self._elements.robots[owner]:
                shared[name] = key
        return own | shared | own
