"""Cells with gaps: stones, beams, rings and tilted tiles above a pit."""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import numpy as np

from manyworlds.terrains.stair_terrains import add_floor, add_rim
from manyworlds.terrains.terrain_generator import SubTerrainCfg, TerrainOutput
from manyworlds.terrains.utils import add_block, lerp, make_border

_TILE_THICKNESS = 0.2


@dataclass(kw_only=True)
class PitTerrainCfg(SubTerrainCfg):
    """A pit with a border and a platform in the center, both at height 0."""

    platform_width: float = 1.0
    """Width of the square in the center [m]."""
    border_width: float = 0.25
    """Width of the flat border [m]."""
    floor_depth: float = 2.0
    """Depth of the pit [m]."""

    def _dig(
        self, spec: mujoco.MjSpec, border_width: float
    ) -> tuple[mujoco.MjsBody, np.ndarray, list[mujoco.MjsGeom]]:
        """Add floor, border and platform; return body, extent of the pit [m] and the geoms."""
        body = spec.body("terrain")
        inner = self.inner_size(border_width, self.platform_width)
        platform = 2 * [self.platform_width]
        geoms = [
            add_floor(body, self.size, -self.floor_depth),
            *add_rim(body, self.size, inner, self.floor_depth),
            add_block(body, self.center, platform, -self.floor_depth, 0.0),
        ]
        return body, inner, geoms

    def _beside_platform(self, offset: np.ndarray, half: np.ndarray) -> bool:
        """Return whether a box misses the platform.

        Args:
            offset: center of the box relative to the cell's center [m], shape [2].
            half: half sides of the box [m], shape [2].
        """
        return bool((np.abs(offset) >= self.platform_width / 2 + half - 1e-9).any())


def _grid_offsets(length: float, pitch: float) -> np.ndarray:
    """Return as many centers at intervals of `pitch` about 0 as fit in `length` [m]."""
    count = int(length / pitch + 1e-6)
    return (np.arange(count) - (count - 1) / 2) * pitch


@dataclass(kw_only=True)
class BoxSteppingStonesTerrainCfg(PitTerrainCfg):
    """Stones in a pit; harder ones are smaller and farther apart."""

    stone_size_range: tuple[float, float] = (0.4, 0.8)
    """Smallest and largest side of a stone, in the hardest and the easiest cell [m]."""
    stone_distance_range: tuple[float, float] = (0.2, 0.5)
    """Gap between stones in the easiest and the hardest cell [m]."""
    stone_height: float = 0.2
    """Thickness of a stone [m]."""
    stone_height_variation: float = 0.1
    """Largest offset of stones above or below the ground, in the hardest cell [m]."""
    stone_size_variation: float = 0.1
    """Largest random reduction of a stone's size [m]."""
    displacement_range: float = 0.1
    """Largest horizontal displacement of stones [m], limited to half the gap."""

    def function(
        self, difficulty: float, spec: mujoco.MjSpec, rng: np.random.Generator
    ) -> TerrainOutput:
        """Add one box per stone; see `SubTerrainCfg.function`."""
        body, inner, geoms = self._dig(spec, self.border_width)
        side = lerp(self.stone_size_range, 1.0 - difficulty)
        distance = lerp(self.stone_distance_range, difficulty)
        shift = min(self.displacement_range, distance / 2)
        for x in _grid_offsets(inner[0], side + distance):
            for y in _grid_offsets(inner[1], side + distance):
                offset = np.array([x, y]) + rng.uniform(-shift, shift, 2)
                size = np.maximum(side - rng.uniform(0, self.stone_size_variation, 2), 0.05)
                top = rng.uniform(-1, 1) * self.stone_height_variation * difficulty
                if self._beside_platform(offset, size / 2):
                    center = self.center + offset
                    geoms.append(add_block(body, center, size, top - self.stone_height, top))
        return self.output(0.0, geoms, rng)


@dataclass(kw_only=True)
class BoxNarrowBeamsTerrainCfg(PitTerrainCfg):
    """Crossing beams above a pit; harder ones are narrower."""

    num_beams: int = 16
    """Number of beams, half of them along x; beams that do not fit are omitted."""
    beam_width_range: tuple[float, float] = (0.2, 0.4)
    """Smallest and largest width of a beam, in the hardest and the easiest cell [m]."""
    beam_height: float = 0.2
    """Thickness of a beam [m]."""
    spacing: float = 0.8
    """Distance between the center lines of parallel beams [m]."""

    def function(
        self, difficulty: float, spec: mujoco.MjSpec, rng: np.random.Generator
    ) -> TerrainOutput:
        """Add one box per beam; see `SubTerrainCfg.function`."""
        body, inner, geoms = self._dig(spec, self.border_width)
        width = lerp(self.beam_width_range, 1.0 - difficulty)
        for axis, count in ((0, (self.num_beams + 1) // 2), (1, self.num_beams // 2)):
            across = 1 - axis
            fitting = int((inner[across] - width) / self.spacing + 1e-6) + 1
            offsets = (np.arange(min(count, fitting)) + 0.5) * self.spacing
            if len(offsets):
                offsets -= offsets.mean()
            for offset in offsets:
                center = self.center.copy()
                size = np.full(2, width)
                center[across] += offset
                size[axis] = inner[axis]
                geoms.append(add_block(body, center, size, -self.beam_height, 0.0))
        return self.output(0.0, geoms, rng)


@dataclass(kw_only=True)
class BoxNestedRingsTerrainCfg(PitTerrainCfg):
    """Square rings of random heights around the platform, with gaps between them."""

    num_rings: int = 5
    """Number of rings; rings that do not fit are omitted."""
    ring_width_range: tuple[float, float] = (0.3, 0.6)
    """Smallest and largest width of a ring, in the hardest and the easiest cell [m]."""
    gap_range: tuple[float, float] = (0.0, 0.2)
    """Width of the gaps in the easiest and the hardest cell [m]."""
    height_range: tuple[float, float] = (0.1, 0.4)
    """Largest height of a ring above the ground in the easiest and the hardest cell [m]."""

    def function(
        self, difficulty: float, spec: mujoco.MjSpec, rng: np.random.Generator
    ) -> TerrainOutput:
        """Add four boxes per ring; see `SubTerrainCfg.function`."""
        width = lerp(self.ring_width_range, 1.0 - difficulty)
        gap = lerp(self.gap_range, difficulty)
        highest = lerp(self.height_range, difficulty)
        room = self.inner_size(self.border_width, self.platform_width).min() - self.platform_width
        count = min(self.num_rings, int((room / 2 - gap) / (width + gap) + 1e-6))
        # The border extends to the outermost gap.
        outer = self.platform_width + 2 * (count * (width + gap) + gap)
        body, _, geoms = self._dig(spec, (min(self.size) - outer) / 2)
        for ring in range(count):
            opening = self.platform_width + 2 * (gap + ring * (width + gap))
            top = rng.uniform(0.0, highest)
            position = (*self.center, (top - self.floor_depth) / 2)
            size = opening + 2 * width
            geoms += make_border(
                body, (size, size), (opening, opening), top + self.floor_depth, position
            )
        return self.output(0.0, geoms, rng)


@dataclass(kw_only=True)
class BoxTiltedGridTerrainCfg(PitTerrainCfg):
    """Tiles above a pit, each with a random tilt."""

    grid_width: float = 1.0
    """Minimum width of a tile's area [m]."""
    tilt_range_deg: float = 15.0
    """Largest tilt in the hardest cell [deg]."""
    height_range: float = 0.1
    """Largest offset of tiles above or below the ground, in the hardest cell [m]."""

    def function(
        self, difficulty: float, spec: mujoco.MjSpec, rng: np.random.Generator
    ) -> TerrainOutput:
        """Add one box per tile; see `SubTerrainCfg.function`."""
        body, inner, geoms = self._dig(spec, self.border_width)
        counts = np.maximum((inner / self.grid_width + 1e-6).astype(int), 1)
        pitch = inner / counts
        for col, row in np.ndindex(*counts):
            offset = (np.array([col, row]) - (counts - 1) / 2) * pitch
            tilt = math.radians(self.tilt_range_deg) * difficulty * rng.uniform()
            direction = rng.uniform(0.0, 2.0 * math.pi)
            height = rng.uniform(-1, 1) * self.height_range * difficulty
            if self._beside_platform(offset, pitch / 2):
                center = [*(self.center + offset), height]
                geoms.append(_add_tile(body, center, pitch, tilt, direction))
        return self.output(0.0, geoms, rng)


def _add_tile(
    body: mujoco.MjsBody, center: list[float], place: np.ndarray, tilt: float, direction: float
) -> mujoco.MjsGeom:
    """Add a box tilted about the center of its top, as large as fits in its area."""
    axis = np.array([math.cos(direction), math.sin(direction), 0.0])
    quat = np.zeros(4)
    matrix = np.zeros(9)
    mujoco.mju_axisAngle2Quat(quat, axis, tilt)
    mujoco.mju_quat2Mat(matrix, quat)
    rotation = matrix.reshape(3, 3)
    thickness = _TILE_THICKNESS / 2
    normal = rotation[:, 2]
    # Its thickness offsets the center of the tilted box, and its corners move as well.
    room = place / 2 - 2 * thickness * np.abs(normal[:2])
    half = place / 2
    if tilt:
        half = np.full(2, (room / np.abs(rotation[:2, :2]).sum(axis=1)).min())
    return body.add_geom(
        type=mujoco.mjtGeom.mjGEOM_BOX,
        pos=(np.asarray(center) - thickness * normal).tolist(),
        quat=quat.tolist(),
        size=[*half, thickness],
    )
