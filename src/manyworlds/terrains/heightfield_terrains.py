"""Cells that are one height field."""

from __future__ import annotations

import abc
import math
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
    "color_by_height",
]

# MuJoCo wants height fields of some height, and bodies that penetrate one need some depth.
_MIN_RANGE = 1e-3
_MIN_BASE_THICKNESS = 0.1


@dataclass(kw_only=True)
class HfTerrainCfg(SubTerrainCfg):
    """A height field within a flat border at height 0; kinds of it say what `heights` are."""

    horizontal_scale: float = 0.1
    """Distance between samples [m], adjusted a little where the cell's size requires."""
    vertical_scale: float = 0.005
    """Heights are multiples of this [m]."""
    base_thickness_ratio: float = 1.0
    """Depth of solid ground below the lowest sample, as a share of the range of heights; at
    least 0.1 m of it."""
    border_width: float = 0.0
    """Width of the flat border [m]."""

    @abc.abstractmethod
    def heights(
        self, difficulty: float, x: np.ndarray, y: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Heights within the border [m], shape [len(y), len(x)].

        Args:
            difficulty: from 0 to 1.
            x: places of the columns relative to the cell's centre [m].
            y: places of the rows relative to the cell's centre [m].
            rng: source of randomness.
        """

    def stand_height(self, heights: np.ndarray) -> float:
        """Height of the place to stand on [m]: the surface in the centre."""
        return float(heights[heights.shape[0] // 2, heights.shape[1] // 2])

    def function(
        self, difficulty: float, spec: mujoco.MjSpec, rng: np.random.Generator
    ) -> TerrainOutput:
        """Add the height field; see `SubTerrainCfg.function`.

        Raises:
            ValueError: the border is narrower than a sample, or leaves no room.
        """
        self.inner_size(self.border_width)
        if 0 < self.border_width < self.horizontal_scale:
            raise ValueError(
                f"{type(self).__name__}.border_width must be 0 or at least the horizontal_scale "
                f"{self.horizontal_scale}, got {self.border_width}: widen the border."
            )
        # An odd number of samples, so that one lies in the centre.
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
        return self._add(spec, heights, rng)

    def _add(
        self, spec: mujoco.MjSpec, heights: np.ndarray, rng: np.random.Generator
    ) -> TerrainOutput:
        low, extent = heights.min(), max(np.ptp(heights), _MIN_RANGE)
        hfield = spec.add_hfield(
            name=f"terrain_hfield_{len(spec.hfields)}",
            nrow=heights.shape[0],
            ncol=heights.shape[1],
            size=[
                *(np.asarray(self.size) / 2),
                extent,
                max(self.base_thickness_ratio * extent, _MIN_BASE_THICKNESS),
            ],
            userdata=((heights - low) / extent).ravel(),
        )
        geom = spec.body("terrain").add_geom(
            type=mujoco.mjtGeom.mjGEOM_HFIELD, hfieldname=hfield.name, pos=[*self.center, low]
        )
        return self.output(self.stand_height(heights), [geom], rng, hfield)


def _edge_distance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Distance of samples to the nearest edge of the area they cover [m]."""
    return np.minimum((x[-1] - np.abs(x))[None, :], (y[-1] - np.abs(y))[:, None])


def _platform(x: np.ndarray, y: np.ndarray, width: float) -> np.ndarray:
    """Which samples are on a square in the centre."""
    near_x, near_y = (np.abs(axis) <= width / 2 + 1e-9 for axis in (x, y))
    return near_y[:, None] & near_x[None, :]


@dataclass(kw_only=True)
class HfPyramidSlopedTerrainCfg(HfTerrainCfg):
    """Four slopes that lead up to a platform, or down to it."""

    slope_range: tuple[float, float]
    """Slope of the easiest and the hardest cell: height over length."""
    platform_width: float = 1.0
    """Width of the flat square in the centre [m]."""
    inverted: bool = False
    """Lead down to the platform."""

    def heights(
        self, difficulty: float, x: np.ndarray, y: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Heights of the slopes; see `HfTerrainCfg.heights`."""
        inner = self.inner_size(self.border_width, self.platform_width)
        length = np.minimum(_edge_distance(x, y), (inner.min() - self.platform_width) / 2)
        return (-1.0 if self.inverted else 1.0) * lerp(self.slope_range, difficulty) * length


@dataclass(kw_only=True)
class HfRandomUniformTerrainCfg(HfTerrainCfg):
    """Uneven ground: heights drawn independently of each other."""

    noise_range: tuple[float, float]
    """Lowest and highest height [m]."""
    noise_step: float = 0.005
    """Heights are drawn in multiples of this [m]."""
    downsampled_scale: float | None = None
    """Distance between the heights drawn [m], between which the ground is interpolated; None
    draws every sample."""
    scale_with_difficulty: bool = False
    """Multiply heights by the difficulty."""

    def heights(
        self, difficulty: float, x: np.ndarray, y: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Heights of the uneven ground; see `HfTerrainCfg.heights`.

        Raises:
            ValueError: `downsampled_scale` is smaller than `horizontal_scale`.
        """
        scale = self.downsampled_scale or self.horizontal_scale
        if scale < self.horizontal_scale:
            raise ValueError(
                "HfRandomUniformTerrainCfg.downsampled_scale must be at least the "
                f"horizontal_scale {self.horizontal_scale}, got {scale}: raise it or leave it out."
            )
        if self.downsampled_scale is None:
            drawn = self._draw((len(y), len(x)), rng)
        else:
            rows, cols = ((axis - axis[0]) / scale for axis in (y, x))
            shape = (math.ceil(rows[-1]) + 1, math.ceil(cols[-1]) + 1)
            drawn = interpolate(self._draw(shape, rng), rows[:, None], cols[None, :])
        return drawn * difficulty if self.scale_with_difficulty else drawn

    def _draw(self, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
        lower, upper = self.noise_range
        steps = math.floor((upper - lower) / self.noise_step + 1e-6)
        return lower + rng.integers(0, steps + 1, shape) * self.noise_step


@dataclass(kw_only=True)
class HfWaveTerrainCfg(HfTerrainCfg):
    """Crossing waves, which are at height 0 along the edges and in the centre."""

    amplitude_range: tuple[float, float]
    """Amplitude of the easiest and the hardest cell [m]."""
    num_waves: int = 1
    """Number of whole waves along each side."""
    base_thickness_ratio: float = 0.25

    def heights(
        self, difficulty: float, x: np.ndarray, y: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Heights of the waves; see `HfTerrainCfg.heights`.

        Raises:
            ValueError: there is less than one wave.
        """
        if self.num_waves < 1:
            raise ValueError(
                f"HfWaveTerrainCfg.num_waves must be at least 1, got {self.num_waves}: "
                "ask for one wave, or use a flat cell."
            )
        wave_x, wave_y = (np.sin(np.pi * self.num_waves * axis / axis[-1]) for axis in (x, y))
        return lerp(self.amplitude_range, difficulty) * wave_y[:, None] * wave_x[None, :]


@dataclass(kw_only=True)
class HfDiscreteObstaclesTerrainCfg(HfTerrainCfg):
    """Rectangular obstacles and pits scattered about a free platform."""

    obstacle_height_mode: Literal["choice", "fixed"] = "choice"
    """Give obstacles the height h, h/2, -h/2 or -h, or all of them h."""
    obstacle_width_range: tuple[float, float]
    """Shortest and longest side [m]."""
    obstacle_height_range: tuple[float, float]
    """Height h of the easiest and the hardest cell [m]."""
    num_obstacles: int
    """Number of obstacles, which may overlap."""
    platform_width: float = 1.0
    """Width of the flat square in the centre [m]."""
    square_obstacles: bool = False
    """Make obstacles as long as wide."""
    origin_z_offset: float = 0.0
    """What to add to the height of the place to stand on [m]."""

    def stand_height(self, heights: np.ndarray) -> float:
        """Height of the platform and the offset [m]."""
        return super().stand_height(heights) + self.origin_z_offset

    def heights(
        self, difficulty: float, x: np.ndarray, y: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Heights of the obstacles; see `HfTerrainCfg.heights`."""
        self.inner_size(self.border_width, self.platform_width)
        height = lerp(self.obstacle_height_range, difficulty)
        choices = [height]
        if self.obstacle_height_mode == "choice":
            choices = [-height, -height / 2, height / 2, height]
        heights = np.zeros((len(y), len(x)))
        for _ in range(self.num_obstacles):
            width, length = rng.uniform(*self.obstacle_width_range, 2)
            length = width if self.square_obstacles else length
            center_x, center_y = rng.uniform(x[0], x[-1]), rng.uniform(y[0], y[-1])
            rows = np.abs(y - center_y) <= length / 2
            cols = np.abs(x - center_x) <= width / 2
            heights[np.ix_(rows, cols)] = rng.choice(choices)
        heights[_platform(x, y, self.platform_width)] = 0.0
        return heights


@dataclass(kw_only=True)
class HfPerlinNoiseTerrainCfg(HfTerrainCfg):
    """Rolling ground of fractal gradient noise (Perlin, 1985), which ends at height 0."""

    height_range: tuple[float, float]
    """Height of the highest place above the lowest, of the easiest and the hardest cell [m]."""
    octaves: int = 4
    """Number of noises added up."""
    persistence: float = 0.5
    """Amplitude of each noise as a share of the one before."""
    lacunarity: float = 2.0
    """How many times finer each noise is than the one before."""
    scale: float = 10.0
    """Distance between the lattice points of the first noise [m]."""
    resolution: float = 0.05
    """Noises with lattice points closer than this [m] are left out."""

    def heights(
        self, difficulty: float, x: np.ndarray, y: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Heights of the rolling ground; see `HfTerrainCfg.heights`."""
        total, weight, spacing = np.zeros((len(y), len(x))), 1.0, self.scale
        for _ in range(self.octaves):
            if spacing < self.resolution:
                break
            total += weight * gradient_noise(x / spacing, y / spacing, rng)
            weight, spacing = weight * self.persistence, spacing / self.lacunarity
        total = (total - total.min()) / max(np.ptp(total), 1e-9)
        # Come down to the height of the neighbouring cells within the outer eighth.
        share = np.clip(_edge_distance(x, y) / (min(x[-1], y[-1]) / 4), 0.0, 1.0)
        return lerp(self.height_range, difficulty) * total * share**2 * (3 - 2 * share)


def gradient_noise(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Gradient noise on a lattice of whole numbers, laid at random (Perlin, 2002).

    Args:
        x: places of the columns, ascending.
        y: places of the rows, ascending.
        rng: source of randomness.

    Returns:
        Noise about 0, shape [len(y), len(x)].
    """
    x, y = (axis - axis[0] + rng.uniform() for axis in (x, y))
    col, row = x.astype(int), y.astype(int)
    u, v = (x - col)[None, :], (y - row)[:, None]
    angle = rng.uniform(0, 2 * np.pi, (row[-1] + 2, col[-1] + 2))

    def corner(down: int, right: int) -> np.ndarray:
        a = angle[np.ix_(row + down, col + right)]
        return np.cos(a) * (u - right) + np.sin(a) * (v - down)

    fade_u, fade_v = (t**3 * (t * (6 * t - 15) + 10) for t in (u, v))
    lower = (1 - fade_u) * corner(0, 0) + fade_u * corner(0, 1)
    upper = (1 - fade_u) * corner(1, 0) + fade_u * corner(1, 1)
    return (1 - fade_v) * lower + fade_v * upper
