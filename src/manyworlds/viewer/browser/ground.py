"""Ground of a page: the floor of all worlds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.viewer.browser import geom_meshes, surfaces, textures
from manyworlds.viewer.browser.layout import at_default, ground_of
from manyworlds.viewer.browser.sky import REACH

if TYPE_CHECKING:
    import viser

_COLOR = (228, 232, 236)
_BELOW = 0.002
"""Distance of the ground from the floor, so that both can be told apart [m] at most."""


class Ground:
    """The lowest floor of a model: with the texture of its material, or a grid of lines.

    An infinite floor, or one that several worlds share, reaches as far as one can see. Lines are
    on a plane of the floor's own color, if it has one.

    Args:
        server: server of the page.
        path: name of the ground in the scene.
        model: the model.
        size: size of one world [m].
        shown: size of all worlds shown [m].
        shared: whether several worlds stand on it.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        path: str,
        model: mujoco.MjModel,
        size: float,
        shown: float,
        *,
        shared: bool,
    ) -> None:
        self.height = -np.inf
        """Height of the ground [m]; -inf without one."""
        self._server = server
        self._path = path
        self._model = model
        self._size = size
        self._shown = shown
        self._shared = shared
        self._node: viser.SceneNodeHandle | None = None
        self._period: np.ndarray | None = None
        self.draw()

    def draw(self) -> None:
        """Draw the floor as the model has it now."""
        self.remove()
        self.height = -np.inf
        self._period = None
        model = self._model
        plane = ground_of(model)
        if plane < 0:
            return
        data = at_default(model)
        below = min(_BELOW, 1e-3 * self._size)
        self._position = data.geom_xpos[plane] - (0.0, 0.0, below)
        self.height = float(self._position[2])
        self._rotation = data.geom_xmat[plane].reshape(3, 3)
        texture = textures.texture_of(model, int(model.geom_matid[plane]))
        if texture >= 0 and not textures.is_cube(model, texture):
            self._node = self._add_textured(plane)
            quaternion = np.empty(4)
            mujoco.mju_mat2Quat(quaternion, data.geom_xmat[plane])
            self._node.wxyz = quaternion
        else:
            self._node = self._add_lines(plane)
        self._node.position = self._position

    def center(self, point: np.ndarray) -> None:
        """Keep an infinite floor under a point, by whole periods of its texture.

        Args:
            point: position [m], shape (3,).
        """
        if self._node is None or self._period is None:
            return
        away = (point - self._position) @ self._rotation
        steps = np.append(np.round(away[:2] / self._period) * self._period, 0.0)
        self._node.position = self._position + self._rotation @ steps

    def remove(self) -> None:
        """Remove the ground from the scene."""
        if self._node is not None:
            self._node.remove()
            self._node = None

    def _add_textured(self, plane: int) -> viser.SceneNodeHandle:
        """Add a plane with a texture that continues as far as the ground is drawn."""
        model = self._model
        reach = REACH * self._shown
        material = int(model.geom_matid[plane])
        own = model.geom_size[plane]
        surface = textures.place_texture(model, material, surfaces.unit_plane(), own)
        half = own[:2].copy()
        if self._shared or half.min() <= 0:
            # The texture continues beyond the sides of the plane.
            unit = np.where(half > 0, half, 1.0)
            self._period = unit * np.abs(2.0 / np.ptp(surface.uv, axis=0))
            middle = surface.uv.mean(axis=0)
            surface.uv = middle + (surface.uv - middle) * (reach / unit)
            half = np.full(2, reach)
        surface.vertices = surface.vertices * (*half, 0.0)
        rgba = geom_meshes.material_color(model, material, model.geom_rgba[plane])
        mesh = geom_meshes.textured_mesh(model, textures.texture_of(model, material), surface, rgba)
        return self._server.scene.add_glb(
            self._path, geom_meshes.to_glb(mesh), cast_shadow=False, receive_shadow=True
        )

    def _add_lines(self, plane: int) -> viser.SceneNodeHandle:
        """Add a grid of lines, in meters unless the worlds are far smaller or larger than that."""
        unit = 10.0 ** np.fix(1.2 * np.log10(self._size / 1.5))
        color, opacity = _plane_color(self._model, plane)
        return self._server.scene.add_grid(
            self._path,
            infinite_grid=True,
            cell_size=0.5 * unit,
            section_size=unit,
            cell_color=(214, 219, 224),
            section_color=(190, 197, 204),
            cell_thickness=0.6,
            section_thickness=1.0,
            plane_color=color,
            plane_opacity=opacity,
            shadow_opacity=0.25,
            fade_distance=8.0 * self._shown + 10.0 * unit,
        )


def _plane_color(model: mujoco.MjModel, plane: int) -> tuple[tuple[int, int, int], float]:
    """Return the color below the lines, of 0 to 255, and its opacity."""
    material = int(model.geom_matid[plane])
    own = model.geom_rgba[plane]
    if np.allclose(own, geom_meshes.DEFAULT_RGBA) and material < 0:
        return _COLOR, 1.0
    rgba = np.clip(geom_meshes.material_color(model, material, own), 0.0, 1.0)
    red, green, blue = (round(255 * channel) for channel in rgba[:3].tolist())
    return (red, green, blue), float(rgba[3])
