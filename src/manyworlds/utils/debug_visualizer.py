"""What can be drawn over a world, by whoever shows it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import mujoco

Color = tuple[float, float, float, float]
"""Red, green, blue and opacity, from 0 to 1."""

_AXIS_COLORS = ((0.9, 0.0, 0.0), (0.0, 0.9, 0.0), (0.0, 0.0, 0.9))


class DebugVisualizer(ABC):
    """Draws shapes in the world frame [m], for one frame."""

    env_idx: int = 0
    show_all_envs: bool = False

    @property
    @abstractmethod
    def meansize(self) -> float:
        """Typical size of a body [m], for shapes that should be neither too big nor too small."""

    def get_env_indices(self, num_envs: int) -> Iterable[int]:
        """The worlds that are shown: draw what belongs to each while it is the current one."""
        return range(num_envs) if self.show_all_envs else (self.env_idx,)

    @abstractmethod
    def add_arrow(
        self,
        start: np.ndarray,
        end: np.ndarray,
        color: Color,
        width: float = 0.015,
        label: str | None = None,
    ) -> None:
        """Draw an arrow."""

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
        """Draw the moving geoms of a model at another state; it has the meshes of the scene's."""

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
        """Draw the axes of a frame."""
        position, axes = np.asarray(position), np.asarray(rotation_matrix).reshape(3, 3).T
        for i, (axis, rgb) in enumerate(zip(axes, axis_colors or _AXIS_COLORS, strict=True)):
            end, color = position + scale * axis, (*rgb, alpha)
            self.add_cylinder(position, end, axis_radius, color, None if i else label)

    @abstractmethod
    def add_sphere(
        self, center: np.ndarray, radius: float, color: Color, label: str | None = None
    ) -> None:
        """Draw a sphere."""

    @abstractmethod
    def add_cylinder(
        self,
        start: np.ndarray,
        end: np.ndarray,
        radius: float,
        color: Color,
        label: str | None = None,
    ) -> None:
        """Draw a cylinder."""

    @abstractmethod
    def add_ellipsoid(
        self,
        center: np.ndarray,
        size: np.ndarray,
        mat: np.ndarray,
        color: Color,
        label: str | None = None,
    ) -> None:
        """Draw an ellipsoid from its half axes and its rotation matrix."""

    @abstractmethod
    def add_box(
        self,
        center: np.ndarray,
        size: np.ndarray,
        mat: np.ndarray,
        color: Color,
        label: str | None = None,
    ) -> None:
        """Draw a box from its half sizes and its rotation matrix."""

    @abstractmethod
    def clear(self) -> None:
        """Take away what was drawn."""


class NullDebugVisualizer(DebugVisualizer):
    """Draws nothing."""

    def __init__(self, env_idx: int = 0, meansize: float = 0.1) -> None:
        self.env_idx = env_idx
        self._meansize = meansize

    @property
    def meansize(self) -> float:
        """The size given [m]."""
        return self._meansize

    def get_env_indices(self, num_envs: int) -> Iterable[int]:
        """No worlds."""
        return ()

    def _draw_nothing(self, *args: object, **kwargs: object) -> None:
        """Draw nothing."""

    add_arrow = add_ghost_mesh = add_frame = add_sphere = _draw_nothing
    add_cylinder = add_ellipsoid = add_box = clear = _draw_nothing
