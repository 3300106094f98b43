"""Gizmo that moves and turns the selected body, and its pose as numbers."""

from __future__ import annotations

import time

import mujoco
import numpy as np

from manyworlds.lab.edits.editable_fields import name_of
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.gizmos import PoseFields, add_gizmo
from manyworlds.lab.page.page_context import PageContext, PagePart

_SHOW_S = 0.2  # shortest time between two poses as numbers


class GizmoPart(PagePart):
    """A gizmo at the selected body, and its pose as numbers, which can be typed.

    Mocap bodies and bodies with a free joint follow it while it is dragged, because their pose is
    part of the state. The pose of any other body is part of the model, and changes when it is let
    go; bodies on it move along.
    """

    period = 0.0

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        self._held = False
        self._grip = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
        """Pose of the body where a drag of it began."""
        self.box = ctx.gui.add_checkbox(
            "Gizmo", False, hint="Arrows and rings that move and turn the selected body."
        )
        self.pose = PoseFields(ctx, lambda pos, quat: self.hold("end", pos, quat))
        self._show_next = 0.0
        self._add()

    def _add(self) -> None:
        self.handle = add_gizmo(self._ctx, "pose_gizmo", (0.1, 0.5), self.hold)

    def renew(self) -> list[str]:
        """Add the gizmo to the new scene."""
        self._held = False
        self._add()
        return []

    def update(self, snapshot: Snapshot) -> None:
        """Put the gizmo where the body is, unless a user holds it."""
        body = self._ctx.body
        self.handle.visible = bool(self.box.value and body)
        if self.handle.visible and not self._held:
            self.handle.position = snapshot.xpos[body]
            self.handle.wxyz = snapshot.xquat[body]
        self.pose.visible = bool(body)
        now = time.monotonic()
        if body and now >= self._show_next:
            self._show_next = now + _SHOW_S
            self.pose.show(snapshot.xpos[body], snapshot.xquat[body])

    def hold(self, phase: str, position: np.ndarray, quat: np.ndarray) -> None:
        """Handle an event of a drag; see `gizmos.Hold`."""
        ctx = self._ctx
        body = self._ctx.body
        if not self._held:
            snapshot = ctx.lab.snapshot
            self._grip = np.array(snapshot.xpos[body]), np.array(snapshot.xquat[body])
        self._held = phase != "end"
        ctx.moved = None
        model = ctx.lab.model
        if not body:
            return
        if model.body_mocapid[body] >= 0:
            ctx.verbs.set_mocap_pose(body=body, pos=position, quat=quat)
        elif (joint := _free_joint(model, body)) >= 0:
            pose = [*position.tolist(), *quat.tolist()]
            ctx.verbs.set_joint_qpos(joint=name_of(model, "joint", joint), qpos=pose, still=True)
        elif phase == "end":
            parent = int(model.body_parentid[body])
            pos, turn = _in_frame(ctx.lab.snapshot, parent, position, quat)
            element = f"body:{name_of(model, 'body', body)}"
            for field, value, now in (
                ("pos", pos, model.body_pos[body]),
                ("quat", turn, model.body_quat[body]),
            ):
                if not np.allclose(value, now, atol=1e-9):
                    ctx.verbs.set_model(element=element, field=field, value=value.tolist())
        else:
            start_pos, start_quat = self._grip
            ctx.moved = start_pos, start_quat, position, quat


def _free_joint(model: mujoco.MjModel, body: int) -> int:
    joint = int(model.body_jntadr[body])
    free = joint >= 0 and model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE
    return joint if free else -1


def _in_frame(
    snapshot: Snapshot, parent: int, position: np.ndarray, quat: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return a pose in the world as one in the frame of a body."""
    back_pos = np.empty(3)
    back_quat = np.empty(4)
    pos = np.empty(3)
    turn = np.empty(4)
    mujoco.mju_negPose(
        back_pos, back_quat, np.array(snapshot.xpos[parent]), np.array(snapshot.xquat[parent])
    )
    mujoco.mju_mulPose(pos, turn, back_pos, back_quat, position.astype(float), quat.astype(float))
    return pos, turn
