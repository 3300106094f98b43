"""What can be drawn over a world, by whoever shows it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np

Color = tuple[float, float, float, float]
"""Red, green, blue and opacity, from 0 to 1."""


class DebugVisualizer(Protocol):
    """Draws shapes in the world frame [m], for one frame."""

    env_idx: int
    show_all_envs: bool

    @property
    def meansize(self) -> float:
        """Typical size of a body [m], for shapes that should be neither too big nor too small."""
        ...

    def get_env_indices(self, num_envs: int) -> Iterable[int]:
        """The worlds that are shown."""
        ...

    def add_arrow(
        self,
        start: np.ndarray,
        end: np.ndarray,
        color: Color,
        width: float = 0.015,
        label: str | None = None,
    ) -> None:
        """Draw an arrow."""
        ...

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
        ...

    def add_sphere(
        self, center: np.ndarray, radius: float, color: Color, label: str | None = None
    ) -> None:
        """Draw a sphere."""
        ...

    def add_cylinder(
        self,
        start: np.ndarray,
        end: np.ndarray,
        radius: float,
        color: Color,
        label: str | None = None,
    ) -> None:
        """Draw a cylinder."""
        ...
