"""Interface for drawing debug shapes in a world, implemented by viewers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    import mujoco

Color = tuple[float, float, float, float]
"""Red, green, blue and opacity, in [0, 1]."""

_AXIS_COLORS = ((0.9, 0.0, 0.0), (0.0, 0.9, 0.0), (0.0, 0.0, 0.9))


class Drawable(Protocol):
    """Object that draws itself in viewers: a manager, a term or a sensor."""

    def debug_vis(self, visualizer: DebugVisualizer) -> None:
        """Draw the object."""
        ...


class DebugVisualizer(ABC):
    """Draws shapes in the world frame [m], for one frame of the viewer."""

    env_idx: int = 0
    show_all_envs: bool = False

    @property
    @abstractmethod
    def meansize(self) -> float:
        """Typical size of a body [m], for scaling shapes."""

    def get_env_indices(self, num_envs: int) -> Iterable[int]:
        """Return the visible worlds: draw the shapes of each world while it is the current one."""
        if self.show_all_envs:
            return range(num_envs)
        return (self.env_idx,)

    @abstractmethod
    def add_arrow(
        self,
        start: np.ndarray,
        end: np.ndarray,
        color: Color,
        width: float = 0.015,
        label: str | None = None,
    ) -> None:
        """Draw an arrow between two points [m], shape (3,)."""

    @abstractmethod
    def add_ghost_mesh(
        self,
        qpos: np.ndarray,
        model: mujoco.MjModel,
        mocap_pos: np.ndarray | None = None,
        mocap_quat: np.ndarray | None = None,
        alpha: float = 0.5,
        label: str | None = None,
    ) -> None:
        """Draw the moving geoms of a model in another state.

        Args:
            qpos: positions of the model, shape (nq,).
            model: a model whose meshes are also in the scene.
            mocap_pos: positions of mocap bodies [m], shape (nmocap, 3); None keeps the model's.
            mocap_quat: orientations of mocap bodies (wxyz), shape (nmocap, 4); likewise.
            alpha: opacity.
            label: text label.
        """

    def add_frame(
        self,
        position: np.ndarray,
        rotation_matrix: np.ndarray,
        scale: float = 0.3,
        label: str | None = None,
        axis_radius: float = 0.01,
        alpha: float = 1.0,
        axis_colors: tuple[tuple[float, float, float], ...] | None = None,
    ) -> None:
        """Draw the axes of a frame at a position [m], with a 3 x 3 rotation matrix."""
        position = np.asarray(position)
        axes = np.asarray(rotation_matrix).reshape(3, 3).T
        for i, (axis, rgb) in enumerate(zip(axes, axis_colors or _AXIS_COLORS, strict=True)):
            end = position + scale * axis
            color = (*rgb, alpha)
            self.add_cylinder(position, end, axis_radius, color, None if i else label)

    @abstractmethod
    def add_sphere(
        self, center: np.ndarray, radius: float, color: Color, label: str | None = None
    ) -> None:
        """Draw a sphere with a center [m] and a radius [m]."""

    @abstractmethod
    def add_cylinder(
        self,
        start: np.ndarray,
        end: np.ndarray,
        radius: float,
        color: Color,
        label: str | None = None,
    ) -> None:
        """Draw a cylinder between two points [m], with a radius [m]."""

    @abstractmethod
    def add_ellipsoid(
        self,
        center: np.ndarray,
        size: np.ndarray,
        mat: np.ndarray,
        color: Color,
        label: str | None = None,
    ) -> None:
        """Draw an ellipsoid by its center [m], half axes [m] and 3 x 3 rotation matrix."""

    @abstractmethod
    def add_box(
        self,
        center: np.ndarray,
        size: np.ndarray,
        mat: np.ndarray,
        color: Color,
        label: str | None = None,
    ) -> None:
        """Draw a box by its center [m], half sizes [m] and 3 x 3 rotation matrix."""

    @abstractmethod
    def clear(self) -> None:
        """Remove all shapes."""


class NullDebugVisualizer(DebugVisualizer):
    """A visualizer that draws nothing."""

    def __init__(self, env_idx: int = 0, meansize: float = 0.1) -> None:
        self.env_idx = env_idx
        self._meansize = meansize

    @property
    def meansize(self) -> float:
        """The given size [m]."""
        return self._meansize

    def get_env_indices(self, num_envs: int) -> Iterable[int]:
        """Return no worlds."""
        return ()

    def _draw_nothing(self, *args: object, **kwargs: object) -> None:
        """Ignore a shape."""

    add_arrow = add_ghost_mesh = add_frame = add_sphere = _draw_nothing
    add_cylinder = add_ellipsoid = add_box = clear = _draw_nothing
