"""Gizmos in the view, which move and turn what they are at, and fields for the same poses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.lab.page.page_context import PageContext
from manyworlds.viewer.browser.widgets import MOST_DIGITS, ShownValue

if TYPE_CHECKING:
    import viser

_SHOWN_DIGITS = 4
_LOCKED = 1e-9  # cosine of the pitch at which roll and yaw turn about the same axis

Hold = Callable[[str, np.ndarray, np.ndarray], object]
"""Takes an event of a drag: the phase `start`, `update` or `end`, the position of the gizmo [m],
shape [3], and its orientation (wxyz), shape [4]."""


def add_gizmo(
    ctx: PageContext, name: str, sizes: tuple[float, float], hold: Hold
) -> viser.TransformControlsHandle:
    """Add a gizmo, which is not visible yet.

    Args:
        ctx: context of the page.
        name: name of its node in the scene.
        sizes: smallest and largest size [m]; in between, it depends on the bodies of the model.
        hold: called with each event of a drag.
    """
    size = float(np.clip(2.0 * ctx.lab.model.stat.meansize, *sizes))
    handle = ctx.server.scene.add_transform_controls(
        f"/over/{name}", scale=size, depth_test=False, visible=False
    )

    @handle.on_update
    async def _(event: viser.TransformControlsEvent) -> None:
        # A coroutine, so that the moves of one drag keep their order.
        position = np.array(handle.position)
        quat = np.array(handle.wxyz)
        ctx.attempt(lambda: hold(event.phase, position, quat))

    return handle


class PoseFields:
    """Position and angles of a pose, which can be typed.

    Args:
        ctx: context of the page.
        put: called with the position [m], shape [3], and the orientation (wxyz), shape [4], that a
            user has typed.
    """

    def __init__(self, ctx: PageContext, put: Callable[[np.ndarray, np.ndarray], object]) -> None:
        self._put = put
        self._pos = np.zeros(3)
        self._quat = np.array([1.0, 0.0, 0.0, 0.0])
        zero = (0.0, 0.0, 0.0)
        gui = ctx.gui
        self.pos = gui.add_vector3("Position [m]", zero, step=0.01, hint="x, y and z in the world.")
        self.angles = gui.add_vector3(
            "Angles [°]", zero, step=1.0, hint="Roll, pitch and yaw: turns about x, then y, then z."
        )
        self._shown: list[ShownValue[tuple[float, float, float]]] = []
        for handle in (self.pos, self.angles):
            handle.precision = MOST_DIGITS
            self._shown.append(ShownValue(handle))
        ctx.on_change(self.pos, self._put_pos)
        ctx.on_change(self.angles, self._put_angles)

    @property
    def visible(self) -> bool:
        """True if the fields are shown."""
        return self.pos.visible

    @visible.setter
    def visible(self, visible: bool) -> None:
        self.pos.visible = self.angles.visible = visible

    def show(self, pos: np.ndarray, quat: np.ndarray) -> None:
        """Show the present pose: position [m], shape [3], and orientation (wxyz), shape [4]."""
        self._pos = np.array(pos)
        self._quat = np.array(quat)
        for shown, values in zip(self._shown, (self._pos, angles_of(self._quat)), strict=True):
            shown.show(_rounded(values))

    def _put_pos(self, typed: tuple[float, float, float]) -> None:
        self._put(_typed(typed, self._pos), self._quat)

    def _put_angles(self, typed: tuple[float, float, float]) -> None:
        angles = np.radians(_typed(typed, angles_of(self._quat)))
        quat = np.empty(4)
        mujoco.mju_euler2Quat(quat, angles, "XYZ")
        self._put(self._pos, quat)


def angles_of(quat: np.ndarray) -> np.ndarray:
    """Return roll, pitch and yaw of an orientation (wxyz) [degrees], shape [3]."""
    flat = np.empty(9)
    mujoco.mju_quat2Mat(flat, np.asarray(quat, float))
    turn = flat.reshape(3, 3)
    level = np.hypot(turn[0, 0], turn[1, 0])  # cosine of the pitch
    pitch = np.arctan2(-turn[2, 0], level)
    if level < _LOCKED:
        return np.degrees([np.arctan2(-turn[1, 2], turn[1, 1]), pitch, 0.0])
    roll = np.arctan2(turn[2, 1], turn[2, 2])
    yaw = np.arctan2(turn[1, 0], turn[0, 0])
    return np.degrees([roll, pitch, yaw])


def _rounded(values: np.ndarray) -> tuple[float, float, float]:
    x, y, z = (round(value, _SHOWN_DIGITS) + 0.0 for value in values.tolist())  # 0.0 for -0.0
    return x, y, z


def _typed(typed: tuple[float, float, float], present: np.ndarray) -> np.ndarray:
    """Return what was typed; numbers that are shown as before stay exactly as they are."""
    return np.where(np.array(typed) == _rounded(present), present, typed)
