"""Cells that consist of one height field."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import mujoco
import numpy as np

from manyworlds.terrains.colors import color_by_height
from manyworlds.terrains.terrain_generator import SubTerrainCfg, TerrainOutput
from manyworlds.terrains.utils import interpolate, lerp

__all__ = [
    "HfDiscreteObstaclesTerrainCfg",
    "HfPerlinNoiseTerrainCfg",
    "HfPyramidSlopedTerrainCfg",
    "HfRandomUniformTerrainCfg",
    "HfTerrainCfg",
    "HfWaveTerrainCfg",
    "add_height_field",
    "color_by_height",
]

# MuJoCo requires a positive height range, and contacts with penetrating bodies need depth.
_MIN_RANGE = 1e-3
_MIN_BASE_THICKNESS = 0.1


@dataclass(kw_only=True)
class HfTerrainCfg(SubTerrainCfg):
    """A height field within a flat border at height 0; subclasses define `heights`."""

    horizontal_scale: float = 0.1
    """Distance between samples [m], adjusted slightly to the cell's size."""
    vertical_scale: float = 0.005
    """Resolution of heights [m]."""
    base_thickness_ratio: float = 1.0
    """Depth of solid ground below the lowest sample, as a share of the range of heights, but at
    least 0.1 m."""
    border_width: float = 0.0
    """Width of the flat border [m]."""

    @abc.abstractmethod
    def heights(
        self, difficulty: float, x: np.ndarray, y: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Return the heights within the border [m], shape [len(y), len(x)].

        Args:
            difficulty: from 0 to 1.
            x: positions of the columns relative to the cell's center [m], shape [num_cols].
            y: positions of the rows relative to the cell's center [m], shape [num_rows].
            rng: random number generator.
        """

    def stand_height(self, heights: np.ndarray) -> float:
        """Return the height of the origin [m]: that of the surface in the center."""
        return float(heights[heights.shape[0] // 2, heights.shape[1] // 2])

    def function(
        self, difficulty: float, spec: mujoco.MjSpec, rng: np.random.Generator
    ) -> TerrainOutput:
        """Add the height field; see `SubTerrainCfg.function`.

        Raises:
            ValueError: the border is narrower than a sample, or too wide for the cell.
        """
        self.inner_size(self.border_width)
        if 0 < self.border_width < self.horizontal_scale:
            raise ValueError(
                f"{type(self).__name__}.border_width must be 0 or at least the horizontal_scale "
                f"{self.horizontal_scale}, got {self.border_width}: widen the border."
            )
        # An odd number of samples, so that one is in the center.
        half = [max(round(length / self.horizontal_scale / 2), 1) for length in self.size]
        x, y = (
            np.linspace(-length / 2, length / 2, 2 * n + 1)
            for length, n in zip(self.size, half, strict=True)
        )
        cols, rows = (
            slice(*np.searchsorted(axis, [-inner, inner + 1e-9]))
            for axis, inner in (
                (x, self.size[0] / 2 - self.border_width + 1e-9),
                (y, self.size[1] / 2 - self.border_width + 1e-9),
            )
        )
        heights = np.zeros((len(y), len(x)))
        heights[rows, cols] = self.heights(difficulty, x[cols], y[rows], rng)
        heights = np.round(heights / self.vertical_scale) * self.vertical_scale
        base = max(self.base_thickness_ratio * np.ptp(heights), _MIN_BASE_THICKNESS)
        hfield, geom = add_height_field(spec, heights, self.size, self.center, base)
        return self.output(self.stand_height(heights), [geom], rng, hfield)


def add_height_field(
    spec: mujoco.MjSpec,
    heights: np.ndarray,
    size: Sequence[float],
    center: Sequence[float] | np.ndarray,
    base_thickness: float,
) -> tuple[mujoco.MjsHField, mujoco.MjsGeom]:
    """Add a height field, on the spec's body "terrain".

    The data of MuJoCo's height fields are from 0 to 1, the first row at the lowest y. The geom is
    at the lowest height.

    Args:
        spec: a spec with a body "terrain".
        heights: heights [m], shape [num_y, num_x]; the first row is at the lowest y.
        size: extent along x and y [m].
        center: center along x and y [m].
        base_thickness: depth of solid ground below the lowest sample [m].
    """
    low = heights.min()
    extent = max(np.ptp(heights), _MIN_RANGE)
    hfield = spec.add_hfield(
        name=f"terrain_hfield_{len(spec.hfields)}",
        nrow=heights.shape[0],
        ncol=heights.shape[1],
        size=[*(np.asarray(size) / 2), extent, base_thickness],
        userdata=((heights - low) / extent).ravel(),
    )
    geom = spec.body("terrain").add_geom(
        type=mujoco.mjtGeom.mjGEOM_HFIELD, hfieldname=hfield.name, pos=[*center, low]
    )
    return hfield, geom


def _edge_distance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the distance of samples to the nearest edge of their area [m], [len(y), len(x)]."""
    return np.minimum((x[-1] - np.abs(x))[None, :], (y[-1] - np.abs(y))[:, None])


def _platform(x: np.ndarray, y: np.ndarray, width: float) -> np.ndarray:
    """Return a mask of samples on a square in the center, shape [len(y), len(x)]."""
    near_x, near_y = (np.abs(axis) <= width / 2 + 1e-9 for axis in (x, y))
    return near_y[:, None] & near_x[None, :]


@dataclass(kw_only=True)
class HfPyramidSlopedTerrainCfg(HfTerrainCfg):
    """Four slopes, up to a platform or down to it."""

    slope_range: tuple[float, float]
    """Slope of the easiest and the hardest cell, as height over length."""
    platform_width: float = 1.0
    """Width of the flat square in the center [m]."""
    inverted: bool = False
    """Slope down to the platform instead of up."""

    def heights(
        self, difficulty: float, x: np.ndarray, y: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Return the heights of the slopes, shape [len(y), len(x)]; see base class."""
        inner = self.inner_size(self.border_width, self.platform_width)
        length = np.minimum(_edge_distance(x, y), (inner.min() - self.platform_width) / 2)
        slope = lerp(self.slope_range, difficulty)
        if self.inverted:
            slope = -slope
        return slope * length


@dataclass(kw_only=True)
class HfRandomUniformTerrainCfg(HfTerrainCfg):
    """Uneven ground with independent random heights."""

    noise_range: tuple[float, float]
    """Minimum and maximum height [m]."""
    noise_step: float = 0.005
    """Resolution of the random heights [m]."""
    downsampled_scale: float | None = None
    """Distance between random heights [m], with interpolation between them; None draws a height
    for every sample."""
    scale_with_difficulty: bool = False
    """Multiply heights by the difficulty."""

    def heights(
        self, difficulty: float, x: np.ndarray, y: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Return the random heights, shape [len(y), len(x)]; see base class.

        Raises:
            ValueError: `downsampled_scale` is smaller than `horizontal_scale`.
        """
        scale = self.downsampled_scale or self.horizontal_scale
        if scale < self.horizontal_scale:
            raise ValueError(
                "HfRandomUniformTerrainCfg.downsampled_scale must be at least the "
                f"horizontal_scale {self.horizontal_scale}, got {scale}: raise it or remove it."
            )
        if self.downsampled_scale is None:
            drawn = self._draw((len(y), len(x)), rng)
        else:
            rows, cols = ((axis - axis[0]) / scale for axis in (y, x))
            shape = (math.ceil(rows[-1]) + 1, math.ceil(cols[-1]) + 1)
            drawn = interpolate(self._draw(shape, rng), rows[:, None], cols[None, :])
        if self.scale_with_difficulty:
            drawn = drawn * difficulty
        return drawn

    def _draw(self, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
        lower, upper = self.noise_range
        steps = math.floor((upper - lower) / self.noise_step + 1e-6)
        return lower + rng.integers(0, steps + 1, shape) * self.noise_step


@dataclass(kw_only=True)
class HfWaveTerrainCfg(HfTerrainCfg):
    """Crossing waves with height 0 along the edges and in the center."""

    amplitude_range: tuple[float, float]
    """Amplitude of the easiest and the hardest cell [m]."""
    num_waves: int = 1
    """Number of full waves along each side."""
    base_thickness_ratio: float = 0.25

    def heights(
        self, difficulty: float, x: np.ndarray, y: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Return the heights of the waves, shape [len(y), len(x)]; see base class.

        Raises:
            ValueError: `num_waves` is less than 1.
        """
        if self.num_waves < 1:
            raise ValueError(
                f"HfWaveTerrainCfg.num_waves must be at least 1, got {self.num_waves}: "
                "use at least one wave, or a flat cell."
            )
        wave_x, wave_y = (np.sin(np.pi * self.num_waves * axis / axis[-1]) for axis in (x, y))
        return lerp(self.amplitude_range, difficulty) * wave_y[:, None] * wave_x[None, :]


@dataclass(kw_only=True)
class HfDiscreteObstaclesTerrainCfg(HfTerrainCfg):
    """Rectangular obstacles and pits around a free platform."""

    obstacle_height_mode: Literal["choice", "fixed"] = "choice"
    """Draw the height of each obstacle from h, h/2, -h/2 and -h, or use h for all."""
    obstacle_width_range: tuple[float, float]
    """Minimum and maximum side length [m]."""
    obstacle_height_range: tuple[float, float]
    """Height h of the easiest and the hardest cell [m]."""
    num_obstacles: int
    """Number of obstacles, which may overlap."""
    platform_width: float = 1.0
    """Width of the flat square in the center [m]."""
    square_obstacles: bool = False
    """Use square obstacles."""
    origin_z_offset: float = 0.0
    """Offset of the origin's height [m]."""

    def stand_height(self, heights: np.ndarray) -> float:
        """Return the height of the platform plus the offset [m]."""
        return super().stand_height(heights) + self.origin_z_offset

    def heights(
        self, difficulty: float, x: np.ndarray, y: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Return the heights of the obstacles, shape [len(y), len(x)]; see base class."""
        self.inner_size(self.border_width, self.platform_width)
        height = lerp(self.obstacle_height_range, difficulty)
        choices = [height]
        if self.obstacle_height_mode == "choice":
            choices = [-height, -height / 2, height / 2, height]
        heights = np.zeros((len(y), len(x)))
        for _ in range(self.num_obstacles):
            width, length = rng.uniform(*self.obstacle_width_range, 2)
            if self.square_obstacles:
                length = width
            center_x = rng.uniform(x[0], x[-1])
            center_y = rng.uniform(y[0], y[-1])
            rows = np.abs(y - center_y) <= length / 2
            cols = np.abs(x - center_x) <= width / 2
            heights[np.ix_(rows, cols)] = rng.choice(choices)
        heights[_platform(x, y, self.platform_width)] = 0.0
        return heights


@dataclass(kw_only=True)
class HfPerlinNoiseTerrainCfg(HfTerrainCfg):
    """Rolling ground of fractal gradient noise (Perlin, 1985), with height 0 at the edges."""

    height_range: tuple[float, float]
    """Range from the lowest to the highest point, in the easiest and the hardest cell [m]."""
    octaves: int = 4
    """Number of octaves of noise."""
    persistence: float = 0.5
    """Ratio of amplitudes of successive octaves."""
    lacunarity: float = 2.0
    """Ratio of frequencies of successive octaves."""
    scale: float = 10.0
    """Distance between the lattice points of the first octave [m]."""
    resolution: float = 0.05
    """Minimum distance between lattice points [m]; finer octaves are omitted."""

    def heights(
        self, difficulty: float, x: np.ndarray, y: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Return heights of rolling ground, shape [len(y), len(x)]; see base class."""
        total = np.zeros((len(y), len(x)))
        weight = 1.0
        spacing = self.scale
        for _ in range(self.octaves):
            if spacing < self.resolution:
                break
            total += weight * gradient_noise(x / spacing, y / spacing, rng)
            weight = weight * self.persistence
            spacing = spacing / self.lacunarity
        total = (total - total.min()) / max(np.ptp(total), 1e-9)
        # Within the outer eighth, heights fall to that of the neighboring cells.
        share = np.clip(_edge_distance(x, y) / (min(x[-1], y[-1]) / 4), 0.0, 1.0)
        return lerp(self.height_range, difficulty) * total * share**2 * (3 - 2 * share)


def gradient_noise(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return gradient noise on an integer lattice with a random offset (Perlin, 2002).

    Args:
        x: positions of the columns, ascending, shape [num_cols].
        y: positions of the rows, ascending, shape [num_rows].
        rng: random number generator.

    Returns:
        Noise with mean 0, shape [len(y), len(x)].
    """
    x, y = (axis - axis[0] + rng.uniform() for axis in (x, y))
    col = x.astype(int)
    row = y.astype(int)
    u = (x - col)[None, :]
    v = (y - row)[:, None]
    angle = rng.uniform(0, 2 * np.pi, (row[-1] + 2, col[-1] + 2))

    def corner(down: int, right: int) -> np.ndarray:
        a = angle[np.ix_(row + down, col + right)]
        return np.cos(a) * (u - right) + np.sin(a) * (v - down)

    fade_u, fade_v = (t**3 * (t * (6 * t - 15) + 10) for t in (u, v))
    lower = (1 - fade_u) * corner(0, 0) + fade_u * corner(0, 1)
    upper = (1 - fade_u) * corner(1, 0) + fade_u * corner(1, 1)
    return (1 - fade_v) * lower + fade_v * upper
