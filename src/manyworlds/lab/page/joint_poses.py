"""Sliders that pose a robot's joints by hand."""

from __future__ import annotations

import math
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from manyworlds.lab.edits.editable_fields import name_of
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.mouse_perturbation import turned
from manyworlds.lab.page.page_context import PageContext, PagePart
from manyworlds.viewer.browser.widgets import MOST_DIGITS, Section, ShownValue, add_number

if TYPE_CHECKING:
    import viser

_SINGLE = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
_FREE = int(mujoco.mjtJoint.mjJNT_FREE)
_FOLLOW_S = 0.5
"""Time between two updates of the sliders while time runs [s]: a message for each joint."""
_REACH_M = 1.0
"""Range of a slide without one, on each side [m]."""


class JointPosePart(PagePart):
    """A slider for each hinge and slide of a robot, and height and yaw of a free base.

    Joints without a name that move the vertices of a soft body have none: they are hundreds.

    While time runs, they set a joint once, and physics moves it on from there. A task's environment
    has the joints to itself.
    """

    period = 0.1

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        self._robot = ""
        self._next = 0.0
        self.folder = ctx.gui.add_folder("Pose joints", expand_by_default=False, visible=False)
        with self.folder:
            self._section = Section(ctx.gui)
        self.sliders: dict[str, viser.GuiInputHandle[Any]] = {}
        """Inputs by the name of the joint; those of a free base are NAME height and NAME yaw."""
        self._shown: dict[str, ShownValue[Any]] = {}
        self._joints: list[int] = []

    def renew(self) -> list[str]:
        """Pose the joints of the new world."""
        self._robot = ""
        self.sliders = {}
        self._shown = {}
        return []

    def update(self, snapshot: Snapshot) -> None:
        """Show the joints of the selected robot."""
        ctx = self._ctx
        robots = ctx.lab.elements.robots
        robot = ctx.robot or next(iter(robots), "")
        if ctx.lab.environment is not None or robot not in robots:
            self.folder.visible = False
            return
        model = ctx.lab.model
        if robot != self._robot:
            self._robot = robot
            self._build(model, robot)
        self.folder.visible = bool(self.sliders)
        now = time.monotonic()
        if not snapshot.paused and now < self._next:
            return
        self._next = now + _FOLLOW_S
        for joint in self._joints:
            name = name_of(model, "joint", joint)
            at = int(model.jnt_qposadr[joint])
            if name in self._shown:
                self._shown[name].show(float(snapshot.qpos[at]))
            elif f"{name} height" in self._shown:
                self._shown[f"{name} height"].show(float(snapshot.qpos[at + 2]))
                yaw = math.degrees(yaw_of(snapshot.qpos[at + 3 : at + 7]))
                self._shown[f"{name} yaw"].show(round(yaw, 6))

    def _build(self, model: mujoco.MjModel, robot: str) -> None:
        elements = self._ctx.lab.elements
        prefix = elements.robots[robot]
        owners = elements.owners
        self.sliders = {}
        self._joints = _posed_joints(model)
        with self._section.empty():
            for joint in self._joints:
                name = name_of(model, "joint", joint)
                kind = int(model.jnt_type[joint])
                if robot not in (owners["jnt"][joint], owners["body"][model.jnt_bodyid[joint]]):
                    continue
                short = name.removeprefix(prefix).removesuffix("_joint")
                if kind in _SINGLE:
                    low, high = _range(model, joint)
                    handle: Any = self._ctx.gui.add_slider(
                        short, low, high, 1e-3, 0.5 * (low + high)
                    )
                    handle.precision = 3
                    self._add(name, handle, partial(self._turn, name))
                elif kind == _FREE:
                    gui = self._ctx.gui
                    height = add_number(gui, f"{short} height [m]", 0.0, min=-1e3, step=0.01)
                    yaw = add_number(gui, f"{short} yaw [deg]", 0.0, min=-360.0, step=1.0)
                    height.precision = yaw.precision = MOST_DIGITS
                    self._add(f"{name} height", height, partial(self._lift, joint))
                    self._add(f"{name} yaw", yaw, partial(self._turn_base, joint))
        self._shown = {name: ShownValue(handle) for name, handle in self.sliders.items()}

    def _add(self, name: str, handle: Any, action: Any) -> None:
        self.sliders[name] = handle
        self._ctx.on_change(handle, action)

    def _turn(self, joint: str, value: float) -> None:
        self._ctx.verbs.set_joint_qpos(joint=joint, qpos=[float(value)], still=True)

    def _lift(self, joint: int, height: float) -> None:
        pose = self._pose(joint)
        pose[2] = height
        self._set(joint, pose)

    def _turn_base(self, joint: int, degrees: float) -> None:
        pose = self._pose(joint)
        turn = math.radians(degrees) - yaw_of(pose[3:])
        pose[3:] = turned(pose[3:], np.array([0.0, 0.0, 1.0]), turn)
        self._set(joint, pose)

    def _pose(self, joint: int) -> np.ndarray:
        at = int(self._ctx.lab.model.jnt_qposadr[joint])
        return np.array(self._ctx.lab.snapshot.qpos[at : at + 7])

    def _set(self, joint: int, pose: np.ndarray) -> None:
        name = name_of(self._ctx.lab.model, "joint", joint)
        self._ctx.verbs.set_joint_qpos(joint=name, qpos=pose.tolist(), still=True)


def yaw_of(quat: np.ndarray) -> float:
    """Return the heading of an orientation (wxyz) about the vertical axis [rad]."""
    w, x, y, z = quat
    return math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def _posed_joints(model: mujoco.MjModel) -> list[int]:
    """Return the ids of the joints that have inputs."""
    soft = {*model.flex_vertbodyid.tolist(), *model.flex_nodebodyid.tolist()}
    bodies = model.jnt_bodyid.tolist()
    return [j for j, body in enumerate(bodies) if body not in soft or model.joint(j).name]


def _range(model: mujoco.MjModel, joint: int) -> tuple[float, float]:
    """Return the lowest and the highest value of a joint's slider [rad or m]."""
    if model.jnt_limited[joint]:
        low, high = model.jnt_range[joint].tolist()
        return low, high
    reach = math.pi if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_HINGE else _REACH_M
    return -reach, reach
