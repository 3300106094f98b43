"""View of the world: bodies, and a camera that may follow one of them."""

from __future__ import annotations

import functools
import threading
import time
from typing import TYPE_CHECKING, cast

import mujoco
import numpy as np

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.utils.viewer_config import ViewerConfig
from manyworlds.viewer.browser.cameras import FOVY, point_camera, point_cameras
from manyworlds.viewer.browser.deformables import SoftBodies
from manyworlds.viewer.browser.framing import frame_all, frame_body
from manyworlds.viewer.browser.world_grid import LOOKS, BodyAt, OnMesh, WorldGrid

if TYPE_CHECKING:
    import viser

    from manyworlds.viewer.browser.overlays.shapes import Poses

_ASPECT = 1.3  # width of the view by its height
_AZIMUTH = 130.0
_ELEVATION = -20.0
_LOOK_S = 0.25
"""Shortest time between two looks for edits of colors, sizes and poses [s]."""
_AROUND = 1.35
"""Size of the view relative to that of the moving bodies."""


class WorldView:
    """Draws the bodies of a world.

    Args:
        server: server of the page.
        model: the compiled model.
        snapshot: state whose moving bodies the camera looks at first.
        before: drawing that this one replaces, whose visible groups and place in the scene stay.
    """

    period = 0.0

    def __init__(
        self,
        server: viser.ViserServer,
        model: mujoco.MjModel,
        snapshot: Snapshot,
        before: WorldView | None = None,
    ) -> None:
        self.server = server
        self.model = model
        self.on_mesh: OnMesh = lambda handle, body_at: None
        """Called for each mesh that is created from now on."""
        self.labels = [""] + [body_label(model, body) for body in range(1, model.nbody)]
        """Names of the bodies for people, by id; empty for the world."""
        self.meshes: list[tuple[viser.BatchedGlbHandle | viser.MeshHandle, BodyAt]] = []
        """Handles of meshes, and the bodies that each draws."""
        self.follow = 0
        """Id of the body that stays in the center of the view; 0 for none."""
        self.offset = np.zeros(3)
        """Displacement of all bodies that centers the followed one [m], shape [3]."""
        # Read before the drawing copies the model: an edit in between is then seen as one.
        self._next_look = 0.0
        self._looks = _looks(model)
        self._outdated = True  # meshes are sent with the first frame, after the panel
        # Children of these frames move with the followed body.
        self._frames = [
            server.scene.add_frame(name, show_axes=False) for name in ("/worlds", "/over")
        ]
        self.grid = WorldGrid(
            server, model, ViewerConfig(), 1, can_select=False, on_mesh=self._note_mesh
        )
        # Not those of the drawing: framing runs in the threads of browsers.
        self._points = SoftBodies(model)
        self._points_lock = threading.Lock()
        if before is None:
            self._home = self._wide_box(snapshot, 0).mean(axis=0)
            self.look(snapshot)
        else:
            self.grid.groups["geom"][:] = before.grid.groups["geom"]
            self._home = before._home

    def update(self, snapshot: Snapshot) -> None:
        """Draw a snapshot; viser sends only changes."""
        self._watch_looks()
        if self._outdated:
            self._outdated = False
            self.meshes.clear()
            self.grid.rebuild()
        self.grid.update(snapshot.xpos[None], snapshot.xquat[None], np.zeros((1, 3)), 0)
        offset = self._offset_of(snapshot)
        self.grid.ground.center(self._home - offset)
        if (offset != self.offset).any():
            self.offset = offset
            with self.server.atomic():
                for frame in self._frames:
                    frame.position = offset

    def _watch_looks(self) -> None:
        """Draw geoms and sites again whose color, size or pose an edit of the model has changed."""
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + _LOOK_S
        looks = _looks(self.model)
        if looks != self._looks:
            self.meshes.clear()
            self.grid.copy_looks(self.model)
        self._looks = looks

    def remove(self) -> None:
        """Remove the frames of the scene; browsers would keep the place of their names."""
        for frame in self._frames:
            frame.position = np.zeros(3)
            frame.remove()

    def name_of(self, body: int) -> str:
        """Return the name of a body; empty for none, and for one without a name."""
        return self.model.body(body).name if body else ""

    def find_again(self, body: int, before: WorldView) -> int:
        """Return the id of a body of an earlier drawing; 0 if it is not there any more."""
        place = before._places[body]
        return self._places.index(place) if place in self._places else 0

    @functools.cached_property
    def _places(self) -> list[tuple[str, ...]]:
        """Names of bodies; those without one are counted on the body above them."""
        places: list[tuple[str, ...]] = [()]
        counts: dict[int, int] = {}
        for body in range(1, self.model.nbody):
            place = (self.model.body(body).name,)
            if not place[0]:
                above = int(self.model.body_parentid[body])
                counts[above] = counts.get(above, 0) + 1
                place = (*places[above], f"{counts[above]}")
            places.append(place)
        return places

    def id_of(self, name: str) -> int:
        """Return the id of a body; 0 if there is none of this name."""
        return max(0, mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_BODY, name)) if name else 0

    def show_group(self, group: int, on: bool) -> None:
        """Show or hide a group of geoms, from the next frame on."""
        self.grid.groups["geom"][group] = on
        self._outdated = True

    def _note_mesh(
        self, handle: viser.BatchedGlbHandle | viser.MeshHandle, body_at: BodyAt
    ) -> None:
        self.meshes.append((handle, body_at))
        self.on_mesh(handle, body_at)

    def look(self, snapshot: Snapshot, body: int = 0, *, move_open: bool = False) -> None:
        """Point the camera at a body, or at everything that moves and the floor below it.

        Args:
            snapshot: present state.
            body: the body; 0 for everything.
            move_open: whether to move the cameras of connected browsers, too.
        """
        box = self._wide_box(snapshot, body) + self._offset_of(snapshot)
        view = (self.server, box, _AZIMUTH, _ELEVATION, FOVY, _ASPECT)
        point_cameras(*view, move_open=move_open)

    def look_from(self, client: viser.ClientHandle, snapshot: Snapshot) -> None:
        """Point the camera of one browser at everything that moves."""
        box = self._wide_box(snapshot, 0) + self._offset_of(snapshot)
        point_camera(client, box, _AZIMUTH, _ELEVATION, FOVY, _ASPECT)

    def _offset_of(self, snapshot: Snapshot) -> np.ndarray:
        """Return the offset for a snapshot, which may not be drawn yet [m], shape [3]."""
        offset = np.zeros(3)
        if self.follow and np.isfinite(snapshot.xpos[self.follow]).all():
            offset[:2] = self._home[:2] - snapshot.xpos[self.follow, :2]
        return offset

    def _wide_box(self, snapshot: Snapshot, body: int) -> np.ndarray:
        poses = cast("Poses", snapshot)  # its fields are those of `mujoco.MjData`
        if body:
            box = frame_body(self.model, poses, body)
        else:
            with self._points_lock:
                points = self._points.points_at(snapshot.xpos, snapshot.xquat)
            box = frame_all(self.model, poses, self.grid.drawn_geoms, points)
        middle = box.mean(axis=0)
        return middle + _AROUND * (box - middle)


def body_label(model: mujoco.MjModel, body: int) -> str:
    """Return the name of a body for people: `body 4` for the fourth one if it has none."""
    return model.body(body).name or f"body {body}"


def _looks(model: mujoco.MjModel) -> bytes:
    """Return the values that geoms and sites are drawn by."""
    return b"".join(getattr(model, name).tobytes() for name in LOOKS)
