"""Pulling and turning of bodies with the mouse, as in MuJoCo's simulate."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import PageContext, PagePart

if TYPE_CHECKING:
    import viser

    from manyworlds.viewer.browser.world_grid import BodyAt

    DragEvent = viser.SceneNodeDragEvent[Any]

_TURN_PER_SCREEN = 2 * np.pi
"""Angle by which a body turns while the mouse crosses the whole view [rad]."""


class PullPart(PagePart):
    """Pulls bodies by Ctrl and the right button, turns them by the left one, selects by a click."""

    period = 0.0

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        self._lock = threading.Lock()
        self._client: int | None = None
        self._target: np.ndarray | None = None
        self._quat: np.ndarray | None = None
        self._start: tuple[np.ndarray, np.ndarray] | None = None
        self._attach_all()

        @ctx.server.on_client_disconnect
        def _(client: viser.ClientHandle) -> None:
            if client.client_id == self._client:
                ctx.attempt(self.end)

    def _attach_all(self) -> None:
        """Add what the scene needs; a rebuild has removed it."""
        ctx = self._ctx
        server = self._ctx.server
        ctx.view.on_mesh = self.attach
        for handle, body_at in ctx.view.meshes:
            self.attach(handle, body_at)

        @server.scene.on_click()
        def _(event: viser.SceneClickEvent) -> None:
            ctx.attempt(lambda: self.click(event.ray_origin, event.ray_direction))

    def renew(self) -> list[str]:
        """Make the bodies of the new world draggable; a pull ends."""
        with self._lock:
            self._client = self._target = self._quat = None
        self._attach_all()
        return []

    def attach(self, handle: viser.BatchedGlbHandle | viser.MeshHandle, body_at: BodyAt) -> None:
        """Make a mesh draggable.

        Args:
            handle: handle of the mesh.
            body_at: function that returns the body of an instance, or at a point of the mesh.
        """

        async def drag(event: DragEvent) -> None:
            point = np.array(event.start_position) - self._ctx.view.offset
            body = self._ctx.attempt(lambda: body_at(event.instance_index, point))
            if body is not None:
                self._ctx.attempt(lambda: self.drag(event, body))

        handle.on_drag("right", modifier="cmd/ctrl")(drag)
        handle.on_drag("left", modifier="cmd/ctrl")(drag)

    def click(self, origin: ArrayLike, direction: ArrayLike) -> None:
        """Select the body that a ray hits first, or none if it hits the floor or nothing.

        If a click is waited for (`PageContext.aimed`), it gets the point instead.

        Args:
            origin: start of the ray in the scene [m], shape [3].
            direction: direction of the ray, shape [3].
        """
        start = np.array(origin, float) - self._ctx.view.offset
        along = np.array(direction, float)
        groups = np.array(self._ctx.view.grid.groups["geom"], float)
        geom = self._ctx.verbs.pick_body(origin=start, direction=along, groups=groups)
        hits = [
            (float(str(geom["distance"])), int(str(geom["body_id"]))),
            self._ctx.view.grid.deformables.bodies.hit(start, along),
        ]
        distance, body = min((hit for hit in hits if hit[0] >= 0), default=(-1.0, 0))
        aimed = self._ctx.aimed
        if aimed is not None:
            point = _on_ground(start, along) if distance < 0.0 else start + distance * along
            self._ctx.aimed = None
            aimed(point)
            return
        if _is_floor(self._ctx.lab.model, body):
            body = 0
        self._ctx.select("body", body)

    def drag(self, event: DragEvent, body: int) -> None:
        """Handle an event of a drag: grab the body, pull or turn it, release it."""
        if event.phase == "start":
            self._begin(event, body)
        elif event.client_id == self._client and event.phase == "update":
            self._move(event)
        elif event.client_id == self._client:
            self.end()

    def end(self) -> None:
        """Release the body."""
        with self._lock:
            self._client = self._target = self._quat = None
        self._ctx.verbs.release_body()

    def update(self, snapshot: Snapshot) -> None:
        """Renew the pull while the mouse does not move."""
        with self._lock:
            target = self._target
            quat = self._quat
        if target is not None:
            self._ctx.verbs.pull_body(target=target)
        if quat is not None:
            self._ctx.verbs.turn_body(quat=quat)

    def _begin(self, event: DragEvent, body: int) -> None:
        point = np.array(event.start_position) - self._ctx.view.offset
        snapshot = self._ctx.lab.snapshot
        self._ctx.select("body", body)
        self._ctx.verbs.grab_body(body=body, point=point)
        with self._lock:
            self._client = event.client_id
            self._start = np.array(event.end_screen_pos), snapshot.xquat[body].copy()
        self._move(event)

    def _move(self, event: DragEvent) -> None:
        if event.button == "right":
            with self._lock:
                self._target = np.array(event.end_position) - self._ctx.view.offset
            self._ctx.verbs.pull_body(target=self._target)
            return
        assert self._start is not None
        start, quat = self._start
        right, down = (np.array(event.end_screen_pos) - start) * _TURN_PER_SCREEN
        camera = _matrix(np.array(event.client.camera.wxyz))
        # A move to the right turns about the camera's up axis, a move down about its right axis.
        aim = turned(quat, -camera[:, 1], right)
        aim = turned(aim, camera[:, 0], -down)
        with self._lock:
            self._quat = aim
        self._ctx.verbs.turn_body(quat=aim)


def _matrix(quat: np.ndarray) -> np.ndarray:
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, np.asarray(quat, float))
    return matrix.reshape(3, 3)


def turned(quat: np.ndarray, axis: np.ndarray, angle: float) -> np.ndarray:
    """Return an orientation (wxyz) after a turn about an axis of the world by an angle [rad]."""
    turn = np.empty(4)
    result = np.empty(4)
    mujoco.mju_axisAngle2Quat(turn, np.ascontiguousarray(axis), float(angle))
    mujoco.mju_mulQuat(result, turn, quat)
    return result


def _on_ground(start: np.ndarray, along: np.ndarray) -> np.ndarray:
    """Return the point at which a ray meets the height 0 [m], shape [3].

    Raises:
        ValueError: it does not.
    """
    if along[2] * start[2] >= 0.0:
        raise ValueError("There is nothing where you clicked: click on the ground or on an object.")
    return start - along * start[2] / along[2]


def _is_floor(model: mujoco.MjModel, body: int) -> bool:
    """Return True for the terrain of a task, and for static bodies of planes and height fields."""
    if model.body_weldid[body] or model.body_mocapid[body] >= 0:
        return False
    start = int(model.body_geomadr[body])
    count = int(model.body_geomnum[body])
    kinds = model.geom_type[start : start + count]
    grounds = [int(mujoco.mjtGeom.mjGEOM_PLANE), int(mujoco.mjtGeom.mjGEOM_HFIELD)]
    is_terrain = model.body(body).name.rpartition("/")[2] == "terrain"
    return is_terrain or bool(count and np.isin(kinds, grounds).all())
