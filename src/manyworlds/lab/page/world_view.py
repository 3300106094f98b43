"""View of the world: bodies, and a camera that may follow one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.lab.snapshot import Snapshot
from manyworlds.utils.viewer_config import ViewerConfig
from manyworlds.viewer.browser.cameras import point_cameras
from manyworlds.viewer.browser.layout import box_around, static_body
from manyworlds.viewer.browser.world_grid import BodyAt, OnMesh, WorldGrid

if TYPE_CHECKING:
    import viser

_ASPECT = 1.3  # width of the view by its height
_AZIMUTH, _ELEVATION = 130.0, -20.0
_AROUND = 1.35
"""Size of the view relative to that of the moving bodies."""


class WorldView:
    """Draws the bodies of a world.

    Args:
        server: server of the page.
        model: the compiled model.
        snapshot: state whose moving bodies the camera looks at first.
    """

    period = 0.0

    def __init__(
        self,
        server: viser.ViserServer,
        model: mujoco.MjModel,
        snapshot: Snapshot,
    ) -> None:
        self.server = server
        self.model = model
        self.on_mesh: OnMesh = lambda handle, body_at: None
        """Called for each mesh that is created from now on."""
        self.meshes: list[tuple[viser.BatchedGlbHandle | viser.MeshHandle, BodyAt]] = []
        """Handles of meshes, and the bodies that each draws."""
        self.follow = 0
        """Id of the body that stays in the center of the view; 0 for none."""
        self.offset = np.zeros(3)
        """Displacement of all bodies that centers the followed one [m], shape [3]."""
        self._outdated = True  # meshes are sent with the first frame, after the panel
        # Children of these frames move with the followed body.
        self._frames = [
            server.scene.add_frame(name, show_axes=False) for name in ("/worlds", "/over")
        ]
        self.grid = WorldGrid(
            server, model, ViewerConfig(), 1, can_select=False, on_mesh=self._note_mesh
        )
        self._look(snapshot)

    def update(self, snapshot: Snapshot) -> None:
        """Draw a snapshot; viser sends only changes."""
        if self._outdated:
            self._outdated = False
            self.meshes.clear()
            self.grid.rebuild()
        self.grid.update(snapshot.xpos[None], snapshot.xquat[None], np.zeros((1, 3)), 0)
        offset = np.zeros(3)
        if self.follow:
            offset[:2] = self._home[:2] - snapshot.xpos[self.follow, :2]
        if (offset != self.offset).any():
            self.offset = offset
            with self.server.atomic():
                for frame in self._frames:
                    frame.position = offset

    def show_group(self, group: int, on: bool) -> None:
        """Show or hide a group of geoms, from the next frame on."""
        self.grid.groups["geom"][group] = on
        self._outdated = True

    def _note_mesh(
        self, handle: viser.BatchedGlbHandle | viser.MeshHandle, body_at: BodyAt
    ) -> None:
        self.meshes.append((handle, body_at))
        self.on_mesh(handle, body_at)

    def _look(self, snapshot: Snapshot) -> None:
        """Point the camera at the box of all moving bodies."""
        box = moving_box(self.model, snapshot)
        self._home = box.mean(axis=0)
        wide = self._home + _AROUND * (box - self._home)
        point_cameras(self.server, wide, _AZIMUTH, _ELEVATION, aspect=_ASPECT)


def moving_box(model: mujoco.MjModel, snapshot: Snapshot) -> np.ndarray:
    """Return the box around the geoms that can move [m], shape [2, 3]."""
    body = model.geom_bodyid.tolist()
    geoms = [geom for geom in range(model.ngeom) if not static_body(model, body[geom])]
    if not geoms:
        return np.array([[-0.5, -0.5, 0.0], [0.5, 0.5, 1.0]])
    return box_around(model, geoms, snapshot.geom_xpos, snapshot.geom_xmat)
