"""Cells made of boxes: flat ground, a grid of columns, scattered boxes; re-exports others."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from manyworlds.terrains.gap_terrains import (
    BoxNarrowBeamsTerrainCfg,
    BoxNestedRingsTerrainCfg,
    BoxSteppingStonesTerrainCfg,
    BoxTiltedGridTerrainCfg,
)
from manyworlds.terrains.stair_terrains import (
    DEPTH,
    BoxInvertedPyramidStairsTerrainCfg,
    BoxOpenStairsTerrainCfg,
    BoxPyramidStairsTerrainCfg,
    BoxRandomStairsTerrainCfg,
    add_floor,
    add_rim,
)
from manyworlds.terrains.terrain_generator import SubTerrainCfg, TerrainOutput
from manyworlds.terrains.utils import add_block, lerp, make_plane

__all__ = [
    "BoxFlatTerrainCfg",
    "BoxInvertedPyramidStairsTerrainCfg",
    "BoxNarrowBeamsTerrainCfg",
    "BoxNestedRingsTerrainCfg",
    "BoxOpenStairsTerrainCfg",
    "BoxPyramidStairsTerrainCfg",
    "BoxRandomGridTerrainCfg",
    "BoxRandomSpreadTerrainCfg",
    "BoxRandomStairsTerrainCfg",
    "BoxSteppingStonesTerrainCfg",
    "BoxTiltedGridTerrainCfg",
]

_SPREAD_ATTEMPTS = 20


@dataclass(kw_only=True)
class BoxFlatTerrainCfg(SubTerrainCfg):
    """Flat ground."""

    def function(
        self, difficulty: float, spec: mujoco.MjSpec, rng: np.random.Generator
    ) -> TerrainOutput:
        """Add one box; see `SubTerrainCfg.function`."""
        geoms = make_plane(spec.body("terrain"), self.size, 0.0, False, DEPTH)
        return self.output(0.0, geoms, rng)


@dataclass(kw_only=True)
class BoxRandomGridTerrainCfg(SubTerrainCfg):
    """A grid of columns with random heights around a platform."""

    grid_width: float
    """Width of a column [m]."""
    grid_height_range: tuple[float, float]
    """Largest height of columns above or below the ground, in the easiest and the hardest
    cell [m]."""
    platform_width: float = 1.0
    """Width of the square in the center [m]."""
    holes: bool = False
    """Restrict columns to the two axes, as wide as the platform, above a pit."""
    merge_similar_heights: bool = False
    """Merge neighboring columns of similar height into one box: fewer geoms, faster physics."""
    height_merge_threshold: float = 0.05
    """Largest height difference of merged columns [m]."""
    max_merge_distance: int = 3
    """Largest number of columns along a side of a merged box."""
    border_width: float = 0.25
    """Minimum width of the flat border [m]."""

    def function(
        self, difficulty: float, spec: mujoco.MjSpec, rng: np.random.Generator
    ) -> TerrainOutput:
        """Add one box per column or group of columns; see `SubTerrainCfg.function`.

        Raises:
            ValueError: no column fits.
        """
        body = spec.body("terrain")
        room = self.inner_size(self.border_width, self.platform_width)
        counts = (room / self.grid_width + 1e-6).astype(int)
        if not counts.all():
            raise ValueError(
                f"BoxRandomGridTerrainCfg.grid_width {self.grid_width} does not fit in a cell of "
                f"size {tuple(self.size)} with a border_width of {self.border_width}: lower it."
            )
        limit = lerp(self.grid_height_range, difficulty)
        bottom = -DEPTH - max(self.grid_height_range)
        corner = self.center - counts * self.grid_width / 2
        geoms = add_rim(body, self.size, counts * self.grid_width, -bottom)
        # Distance from each column's near side to the center, along x and along y.
        near = [(np.abs(np.arange(n) - (n - 1) / 2) - 0.5) * self.grid_width for n in counts]
        in_x, in_y = (side < self.platform_width / 2 - 1e-9 for side in near)
        # The platform replaces all columns that it touches.
        platform = np.array([in_x.sum(), in_y.sum()]) * self.grid_width
        geoms.append(add_block(body, self.center, platform, bottom, 0.0))
        free = ~(in_y[:, None] & in_x)
        if self.holes:
            free = in_y[:, None] ^ in_x
        heights = rng.uniform(-limit, limit, free.shape)
        for lower, upper, top in self._groups(heights, free):
            center = corner + (np.array(lower) + upper) / 2 * self.grid_width
            size = (np.array(upper) - lower) * self.grid_width
            geoms.append(add_block(body, center, size, bottom, top))
        if self.holes:
            geoms.append(add_floor(body, self.size, bottom))
        return self.output(0.0, geoms, rng)

    def _groups(
        self, heights: np.ndarray, free: np.ndarray
    ) -> list[tuple[tuple[int, int], tuple[int, int], float]]:
        """Split the columns into rectangles of similar height: lower and upper corner, height."""
        groups = []
        reach = self.max_merge_distance if self.merge_similar_heights else 1
        for row, col in np.ndindex(*heights.shape):
            if not free[row, col]:
                continue
            top = heights[row, col]
            similar = free & (np.abs(heights - top) <= self.height_merge_threshold)
            width = 1
            length = 1
            while width < reach and similar[row, col + width : col + width + 1].any():
                width += 1
            span = slice(col, col + width)
            while length < reach and similar[row + length : row + length + 1, span].all(1).any():
                length += 1
            block = (slice(row, row + length), span)
            free[block] = False
            groups.append(((col, row), (col + width, row + length), float(heights[block].mean())))
        return groups


@dataclass(kw_only=True)
class BoxRandomSpreadTerrainCfg(SubTerrainCfg):
    """Boxes scattered around a free platform."""

    num_boxes: int = 60
    """Number of boxes; boxes without a free position are omitted."""
    box_width_range: tuple[float, float] = (0.3, 1.0)
    """Range of one side [m]."""
    box_length_range: tuple[float, float] = (0.3, 1.0)
    """Range of the other side [m]."""
    box_height_range: tuple[float, float] = (0.05, 1.0)
    """Range of heights in the hardest cell [m]; in the easiest, all boxes have the lowest."""
    box_yaw_range: tuple[float, float] = (0.0, 360.0)
    """Range of the yaw angle [deg]."""
    add_floor: bool = True
    """Add a floor between the boxes; without it, only the platform and the border exist."""
    platform_width: float = 1.0
    """Width of the free square in the center [m]."""
    border_width: float = 0.25
    """Width of the free border [m]."""

    def function(
        self, difficulty: float, spec: mujoco.MjSpec, rng: np.random.Generator
    ) -> TerrainOutput:
        """Add the boxes; see `SubTerrainCfg.function`."""
        body = spec.body("terrain")
        inner = self.inner_size(self.border_width, self.platform_width)
        if self.add_floor:
            geoms = [add_floor(body, self.size, 0.0)]
        else:
            platform = 2 * [self.platform_width]
            geoms = add_rim(body, self.size, inner, DEPTH)
            geoms.append(add_block(body, self.center, platform, -DEPTH, 0.0))
        highest = lerp(self.box_height_range, difficulty)
        for _ in range(self.num_boxes):
            half = np.array(
                [rng.uniform(*self.box_width_range), rng.uniform(*self.box_length_range)]
            )
            half = half / 2
            yaw = np.radians(rng.uniform(*self.box_yaw_range))
            height = rng.uniform(self.box_height_range[0], highest)
            offset = self._free_place(inner, half, yaw, rng)
            if offset is not None:
                geom = add_block(body, self.center + offset, 2 * half, 0.0, height)
                geom.quat[:] = [np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)]
                geoms.append(geom)
        return self.output(0.0, geoms, rng)

    def _free_place(
        self, inner: np.ndarray, half: np.ndarray, yaw: float, rng: np.random.Generator
    ) -> np.ndarray | None:
        """Return a random position off platform and border, relative to the cell's center [m]."""
        cos = abs(np.cos(yaw))
        sin = abs(np.sin(yaw))
        extent = np.array([cos * half[0] + sin * half[1], sin * half[0] + cos * half[1]])
        limit = np.maximum(inner / 2 - extent, 0.0)
        places = rng.uniform(-limit, limit, (_SPREAD_ATTEMPTS, 2))
        fits = (np.abs(places) >= self.platform_width / 2 + extent).any(axis=1)
        fits &= bool((extent <= inner / 2).all())
        if not fits.any():
            return None
        return places[fits.argmax()]
