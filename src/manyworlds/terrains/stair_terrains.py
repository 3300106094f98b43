"""Cells with stairs around a platform in the center."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from manyworlds.terrains.terrain_generator import SubTerrainCfg, TerrainOutput
from manyworlds.terrains.utils import add_block, lerp, make_border

# Depth of solid boxes below their surface, so that penetrating bodies are pushed up again.
DEPTH = 1.0


def add_rim(
    body: mujoco.MjsBody, size: tuple[float, float], inner: np.ndarray, depth: float
) -> list[mujoco.MjsGeom]:
    """Add a solid border from height 0 down to `depth` [m] below the ground."""
    center = np.asarray(size) / 2
    return make_border(body, size, tuple(inner), depth, (*center, -depth / 2))


def add_floor(body: mujoco.MjsBody, size: tuple[float, float], height: float) -> mujoco.MjsGeom:
    """Add the floor of a whole cell at `height` [m]."""
    return add_block(body, np.asarray(size) / 2, size, height - DEPTH, height)


@dataclass(kw_only=True)
class BoxPyramidStairsTerrainCfg(SubTerrainCfg):
    """Stairs up to a platform from all sides."""

    border_width: float = 0.0
    """Width of the flat border [m]."""
    step_height_range: tuple[float, float]
    """Height of a step in the easiest and the hardest cell [m]."""
    step_width: float
    """Depth of a tread [m]."""
    platform_width: float = 1.0
    """Minimum width of the square in the center [m]."""
    holes: bool = False
    """Restrict stairs to the two axes, as wide as the platform, above a pit."""

    def function(
        self, difficulty: float, spec: mujoco.MjSpec, rng: np.random.Generator
    ) -> TerrainOutput:
        """Add one box per step, each on top of the previous; see `SubTerrainCfg.function`."""
        body = spec.body("terrain")
        inner = self.inner_size(self.border_width, self.platform_width)
        height = lerp(self.step_height_range, difficulty)
        count = self._num_steps(inner)
        # One slab serves as the border, unless there is a pit beside the stairs.
        if self.holes:
            geoms = [add_floor(body, self.size, -DEPTH), *add_rim(body, self.size, inner, DEPTH)]
        else:
            geoms = [add_floor(body, self.size, 0.0)]
        steps = count + 1
        if not height:
            # All steps would be in the plane of the first, or of the slab.
            steps = int(self.holes)
        for step in range(steps):
            size = inner - 2 * step * self.step_width
            top = (step + 1) * height
            geoms += [add_block(body, *shape, -DEPTH, top) for shape in self._shapes(size)]
        return self.output((count + 1) * height, geoms, rng)

    def _num_steps(self, inner: np.ndarray) -> int:
        """Return the number of steps between the border and the platform."""
        return int((inner.min() - self.platform_width) / (2 * self.step_width) + 1e-6)

    def _shapes(self, size: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return centers and sizes: a step's square, or, with holes, a cross without overlaps."""
        if not self.holes:
            return [(self.center, size)]
        width = self.platform_width
        offset = np.array([0.0, (size[1] + width) / 4])
        arm = [width, (size[1] - width) / 2]
        arms = [(self.center + sign * offset, np.array(arm)) for sign in (-1, 1) if arm[1] > 1e-6]
        return [(self.center, np.array([size[0], width])), *arms]


@dataclass(kw_only=True)
class BoxInvertedPyramidStairsTerrainCfg(BoxPyramidStairsTerrainCfg):
    """Stairs down to a platform from all sides."""

    def function(
        self, difficulty: float, spec: mujoco.MjSpec, rng: np.random.Generator
    ) -> TerrainOutput:
        """Add four boxes per step; see `SubTerrainCfg.function`."""
        body = spec.body("terrain")
        inner = self.inner_size(self.border_width, self.platform_width)
        height = lerp(self.step_height_range, difficulty)
        count = self._num_steps(inner)
        low = -(count + 1) * height
        bottom = low - DEPTH
        geoms = add_rim(body, self.size, inner, -bottom)
        for step in range(count):
            size = inner - 2 * step * self.step_width
            top = -(step + 1) * height
            if self.holes:
                geoms += self._arms(body, size, bottom, top)
                continue
            position = (*self.center, (top + bottom) / 2)
            hole = size - 2 * self.step_width
            geoms += make_border(body, tuple(size), tuple(hole), top - bottom, position)
        rest = inner - 2 * count * self.step_width
        geoms += [add_block(body, *shape, bottom, low) for shape in self._shapes(rest)]
        if self.holes:
            geoms.append(add_floor(body, self.size, bottom))
        return self.output(low, geoms, rng)

    def _arms(
        self, body: mujoco.MjsBody, size: np.ndarray, bottom: float, top: float
    ) -> list[mujoco.MjsGeom]:
        """Add the step on each of the four arms."""
        geoms = []
        for axis in (0, 1):
            offset = np.zeros(2)
            extent = np.full(2, self.platform_width)
            offset[axis] = (size[axis] - self.step_width) / 2
            extent[axis] = self.step_width
            for sign in (-1, 1):
                center = self.center + sign * offset
                geoms.append(add_block(body, center, extent, bottom, top))
        return geoms


@dataclass(kw_only=True)
class BoxOpenStairsTerrainCfg(SubTerrainCfg):
    """Stairs of thin treads without risers; harder ones are higher and narrower."""

    step_height_range: tuple[float, float] = (0.1, 0.2)
    """Height of a step in the easiest and the hardest cell [m]."""
    step_width_range: tuple[float, float] = (0.4, 0.8)
    """Smallest and largest depth of a tread, in the hardest and the easiest cell [m]."""
    platform_width: float = 1.0
    """Minimum width of the square in the center [m]."""
    border_width: float = 0.25
    """Width of the flat border [m]."""
    step_thickness: float = 0.05
    """Thickness of a tread [m]."""
    inverted: bool = True
    """Descend to the platform instead of ascending."""

    def function(
        self, difficulty: float, spec: mujoco.MjSpec, rng: np.random.Generator
    ) -> TerrainOutput:
        """Add four boxes per step; see `SubTerrainCfg.function`."""
        body = spec.body("terrain")
        inner = self.inner_size(self.border_width, self.platform_width)
        rise = lerp(self.step_height_range, difficulty)
        if self.inverted:
            rise = -rise
        width = lerp(self.step_width_range, 1.0 - difficulty)
        count = int((inner.min() - self.platform_width) / (2 * width) + 1e-6)
        top = (count + 1) * rise
        # The lower end of the stairs is on a floor.
        geoms = [add_floor(body, self.size, min(top, 0.0))]
        if self.inverted and rise:  # a rim without height is no geom
            geoms += add_rim(body, self.size, inner, -top)
        for step in range(count):
            size = inner - 2 * step * width
            height = (step + 1) * rise
            position = (*self.center, height - self.step_thickness / 2)
            geoms += make_border(
                body, tuple(size), tuple(size - 2 * width), self.step_thickness, position
            )
        if not self.inverted:
            size = inner - 2 * count * width
            geoms.append(add_block(body, self.center, size, top - self.step_thickness, top))
        return self.output(top, geoms, rng)


@dataclass(kw_only=True)
class BoxRandomStairsTerrainCfg(SubTerrainCfg):
    """Stairs up to a platform with steps of different heights."""

    step_width: float = 0.8
    """Depth of a tread [m]."""
    step_height_range: tuple[float, float] = (0.1, 0.3)
    """Lowest and highest step in the hardest cell [m]; in the easiest, all have the lowest."""
    platform_width: float = 1.0
    """Minimum width of the square in the center [m]."""
    border_width: float = 0.25
    """Width of the flat border [m]."""

    def function(
        self, difficulty: float, spec: mujoco.MjSpec, rng: np.random.Generator
    ) -> TerrainOutput:
        """Add one box per step, each on top of the previous; see `SubTerrainCfg.function`."""
        body = spec.body("terrain")
        inner = self.inner_size(self.border_width, self.platform_width)
        count = int((inner.min() - self.platform_width) / (2 * self.step_width) + 1e-6)
        highest = lerp(self.step_height_range, difficulty)
        tops = np.cumsum(rng.uniform(self.step_height_range[0], highest, count + 1))
        geoms = [add_floor(body, self.size, 0.0)]
        for step, top in enumerate(tops):
            size = inner - 2 * step * self.step_width
            geoms.append(add_block(body, self.center, size, -DEPTH, top))
        return self.output(float(tops[-1]), geoms, rng)
