"""Camera that follows behind a robot."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from manyworlds.viewer.browser.cameras import move_camera

if TYPE_CHECKING:
    from manyworlds.lab.loop.snapshot import Snapshot
    from manyworlds.lab.page.world_view import WorldView

DISTANCE = 3.0
"""Distance from the camera to the point that it looks at [m]."""
PITCH = math.radians(-20.0)
"""Direction of view above the horizon [rad]."""
RAISE = 0.3
"""Height of the point that the camera looks at above the body [m]."""
LAG = 3.0
"""Rate at which the camera approaches its place [1/s]."""


class ChaseCamera:
    """Moves the cameras of a page behind a body; a body that does not turn is seen from its back.

    Args:
        view: drawing of the world.
        robot: name of the robot.
        body: id of the body.
    """

    def __init__(self, view: WorldView, robot: str, body: int) -> None:
        self.robot = robot
        self._view = view
        self._body = body
        self._before = view.follow
        view.follow = 0
        self._target: np.ndarray | None = None
        self._heading = np.array([1.0, 0.0])

    def place(self, snapshot: Snapshot) -> tuple[np.ndarray, np.ndarray]:
        """Return the place to which the camera moves.

        Returns:
            Its position, and the point that it looks at [m], each of shape [3].
        """
        forward = quat_x(snapshot.xquat[self._body])[:2]
        if np.linalg.norm(forward) > 0.2:  # otherwise it stands on its head or tail
            self._heading = forward / np.linalg.norm(forward)
        look_at = snapshot.xpos[self._body] + [0.0, 0.0, RAISE]
        back = np.array([*(-math.cos(PITCH) * self._heading), -math.sin(PITCH)])
        return look_at + DISTANCE * back, look_at

    def move(self, snapshot: Snapshot, elapsed: float) -> None:
        """Move the cameras a part of the way.

        Args:
            snapshot: present state.
            elapsed: real time since the last move [s].
        """
        wanted = np.stack(self.place(snapshot))
        if not np.isfinite(wanted).all():
            return
        if self._target is None:
            self._target = wanted
        self._target = self._target + (1.0 - math.exp(-LAG * elapsed)) * (wanted - self._target)
        position, look_at = self._target + self._view.offset
        for client in self._view.server.get_clients().values():
            move_camera(client, position, look_at)

    def leave(self, snapshot: Snapshot) -> None:
        """Give the cameras back: they look at the world as before."""
        self._view.follow = self._before
        self._view.update(snapshot)
        self._view.look(snapshot, self._before, move_open=True)


def quat_x(quat: np.ndarray) -> np.ndarray:
    """Return the x axis of an orientation (wxyz), shape [3]."""
    w, x, y, z = quat
    return np.array([1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z), 2.0 * (x * z - w * y)])
