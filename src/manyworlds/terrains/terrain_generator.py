"""Terrain of cells: kinds of cells, and their assembly on one body."""

from __future__ import annotations

import abc
import copy
import math
from dataclasses import dataclass, field
from typing import Literal

import mujoco
import numpy as np

from manyworlds.terrains.colors import color_by_height, height_to_rgb, random_rgb
from manyworlds.terrains.utils import (
    find_flat_patches_from_heightfield,
    geom_rotation,
    height_map,
    lerp,
    make_border,
)

_MIN_BORDER_HEIGHT = 0.1
_PATCH_RESOLUTION = 0.1


@dataclass
class FlatPatchSamplingCfg:
    """Options for finding flat patches in a cell.

    Ranges are in the cell's frame: x and y from its lower corner, heights from ground level.
    """

    num_patches: int = 10
    """Number of patches per cell."""
    patch_radius: float = 0.5
    """Radius of the disc that must be flat [m]."""
    max_height_diff: float = 0.05
    """Largest height difference within the disc [m]."""
    x_range: tuple[float, float] = (-1e6, 1e6)
    """Range of the centers along x [m]."""
    y_range: tuple[float, float] = (-1e6, 1e6)
    """Range of the centers along y [m]."""
    z_range: tuple[float, float] = (-1e6, 1e6)
    """Range of the centers' heights [m]."""
    grid_resolution: float | None = None
    """Distance between samples [m]; None uses that of a height field, else 0.1. Narrower features,
    such as a gap between two boxes, may be missed."""


@dataclass
class TerrainGeometry:
    """A piece of terrain."""

    geom: mujoco.MjsGeom | None = None
    hfield: mujoco.MjsHField | None = None
    """Height field of the geom."""
    color: tuple[float, float, float, float] | None = None
    """Color that overrides the color scheme."""


@dataclass
class TerrainOutput:
    """Content of a cell, in its own frame: the lower corner is at (0, 0)."""

    origin: np.ndarray
    """Origin for worlds in this cell [m], shape [3], on the surface."""
    geometries: list[TerrainGeometry]
    flat_patches: dict[str, np.ndarray] | None = None
    """Centers of flat patches by name [m], each of shape [num_patches, 3]."""


@dataclass
class SubTerrainCfg(abc.ABC):
    """Configuration of a kind of terrain that fills a cell."""

    proportion: float = 1.0
    """Share of this kind: of the cells or, with a curriculum, of the worlds."""
    size: tuple[float, float] = (10.0, 10.0)
    """Extent along x and y [m]; a generator replaces it by its own."""
    flat_patch_sampling: dict[str, FlatPatchSamplingCfg] | None = None
    """Flat patches to find, by name."""

    @abc.abstractmethod
    def function(
        self, difficulty: float, spec: mujoco.MjSpec, rng: np.random.Generator
    ) -> TerrainOutput:
        """Add the cell's geoms to the spec's body "terrain".

        They fill the rectangle from (0, 0) to `size`; the ground is at height 0. The generator
        then moves them into place.

        Args:
            difficulty: from 0, the easiest, to 1.
            spec: a spec with a body "terrain".
            rng: random number generator for this cell only.
        """

    @property
    def center(self) -> np.ndarray:
        """Center of the cell [m], shape [2]."""
        return np.asarray(self.size) / 2

    def output(
        self,
        height: float,
        geoms: list[mujoco.MjsGeom],
        rng: np.random.Generator,
        hfield: mujoco.MjsHField | None = None,
    ) -> TerrainOutput:
        """Return the output of a cell with its origin in the center, at `height` [m].

        The result includes the flat patches of `flat_patch_sampling`.
        """
        geometries = [TerrainGeometry(geom, hfield) for geom in geoms]
        patches = {}
        own_resolution = _PATCH_RESOLUTION
        if hfield is not None:
            own_resolution = float(2 * hfield.size[0] / (hfield.ncol - 1))
        for name, sampling in (self.flat_patch_sampling or {}).items():
            resolution = sampling.grid_resolution or own_resolution
            heights = height_map(geometries, self.size, resolution)
            patches[name] = find_flat_patches_from_heightfield(
                heights, resolution, 0.0, sampling, rng
            )
        return TerrainOutput(np.array([*self.center, height]), geometries, patches or None)

    def inner_size(self, border_width: float, platform_width: float = 0.0) -> np.ndarray:
        """Return the extent within the border [m], shape [2].

        Raises:
            ValueError: the platform does not fit.
        """
        inner = np.asarray(self.size) - 2 * border_width
        if inner.min() <= 0 or inner.min() < platform_width - 1e-9:
            raise ValueError(
                f"{type(self).__name__}: a border_width of {border_width} and a platform_width "
                f"of {platform_width} do not fit in a cell of size {tuple(self.size)}: "
                "make them smaller or the cell larger."
            )
        return inner


@dataclass(kw_only=True)
class TerrainGeneratorCfg:
    """Configuration of a grid of cells of several kinds."""

    seed: int | None = None
    """Random seed; None draws one from NumPy's global generator."""
    curriculum: bool = False
    """Use one column per kind, harder in each row; else kinds and difficulties are random."""
    size: tuple[float, float]
    """Extent of each cell along x and y [m]."""
    border_width: float = 0.0
    """Width of the flat border around all cells [m]."""
    border_height: float = 1.0
    """Depth of the border, whose top is at height 0 [m]; at least 0.1."""
    num_rows: int = 1
    """Number of cells along x; with a curriculum, of levels."""
    num_cols: int = 1
    """Number of cells along y; with a curriculum, the number of kinds replaces it."""
    color_scheme: Literal["height", "random", "none"] = "height"
    """Color by height, one random color per cell, or MuJoCo's default color."""
    sub_terrains: dict[str, SubTerrainCfg] = field(default_factory=dict)
    """Kinds of terrain by name."""
    difficulty_range: tuple[float, float] = (0.0, 1.0)
    """Lowest and highest difficulty, within [0, 1]."""
    add_lights: bool = False
    """Add a directional light that shines straight down on all cells."""


class TerrainGenerator:
    """Builds a terrain of cells, with rows along x and columns along y, centered at the origin.

    The random numbers of each cell depend only on the seed and its row and column, so that a change
    of one kind of terrain leaves the other cells unchanged.

    Attributes:
        cfg: a copy of the config with its seed, number of columns and cell sizes filled in.
        terrain_origins: origin of each cell [m], shape [num_rows, num_cols, 3].
        kinds: name of the kind of each cell by row and column; empty before `compile`.
        flat_patches: centers of flat patches by name [m], each of shape
            [num_rows, num_cols, num_patches, 3]. Cells of a kind without such patches repeat
            their origin.
        flat_patch_radii: radius of the flat patches by name [m]; the smallest among the kinds.

    Raises:
        ValueError: the config has no kinds of terrain, or an invalid size, proportion or
            difficulty.
    """

    def __init__(self, cfg: TerrainGeneratorCfg, device: str = "cpu") -> None:
        _check(cfg)
        self.cfg = copy.deepcopy(cfg)
        self.device = device
        if self.cfg.seed is None:
            self.cfg.seed = int(np.random.randint(2**31))
        if self.cfg.curriculum:
            self.cfg.num_cols = len(self.cfg.sub_terrains)
        for sub_terrain in self.cfg.sub_terrains.values():
            sub_terrain.size = self.cfg.size
        shape = (self.cfg.num_rows, self.cfg.num_cols)
        self.terrain_origins = np.zeros((*shape, 3))
        self.kinds = [[""] * self.cfg.num_cols for _ in range(self.cfg.num_rows)]
        self.flat_patches: dict[str, np.ndarray] = {}
        self.flat_patch_radii: dict[str, float] = {}
        for sub_terrain in self.cfg.sub_terrains.values():
            for name, sampling in (sub_terrain.flat_patch_sampling or {}).items():
                count = sampling.num_patches
                if name in self.flat_patches:
                    count = max(count, self.flat_patches[name].shape[2])
                self.flat_patches[name] = np.zeros((*shape, count, 3))
                radius = self.flat_patch_radii.get(name, sampling.patch_radius)
                self.flat_patch_radii[name] = min(radius, sampling.patch_radius)

    @property
    def proportions(self) -> np.ndarray:
        """Share of each kind, shape [number of kinds], with sum 1."""
        shares = np.array([kind.proportion for kind in self.cfg.sub_terrains.values()], float)
        return shares / shares.sum()

    def compile(self, spec: mujoco.MjSpec) -> None:
        """Add the terrain to a spec, on the body "terrain", which is created if missing."""
        body = spec.body("terrain") or spec.worldbody.add_body(name="terrain")
        names = _Names()
        for row in range(self.cfg.num_rows):
            for col in range(self.cfg.num_cols):
                name, difficulty, rng = self.cell(row, col)
                self.kinds[row][col] = name
                kind = self.cfg.sub_terrains[name]
                try:
                    output = kind.function(difficulty, spec, rng)
                except (ValueError, ArithmeticError, IndexError) as error:
                    raise ValueError(
                        f"Sub-terrain '{name}' cannot be made at difficulty {difficulty:.3g}: "
                        f"{error}. Correct {kind}."
                    ) from error
                self._place(output, row, col)
                for geometry in output.geometries:
                    names.give(geometry)
                self._color(spec, output, rng)
        self._add_border(body, names)
        if self.cfg.add_lights:
            spec.worldbody.add_light(
                name="terrain_light",
                type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
                pos=(0.0, 0.0, 10.0),
                dir=(0.0, 0.0, -1.0),
                castshadow=False,
            )

    def cell(self, row: int, col: int) -> tuple[str, float, np.random.Generator]:
        """Return the kind and the difficulty of a cell, and the generator that it is made with."""
        seed = np.random.SeedSequence(self.cfg.seed, spawn_key=(row, col))
        rng = np.random.default_rng(seed)
        kinds = list(self.cfg.sub_terrains)
        if self.cfg.curriculum:
            kind = col
            share = row / max(self.cfg.num_rows - 1, 1)
        else:
            kind = int(rng.choice(len(kinds), p=self.proportions))
            share = rng.uniform()
        return kinds[kind], lerp(self.cfg.difficulty_range, share), rng

    def _place(self, output: TerrainOutput, row: int, col: int) -> None:
        """Move a cell from its own frame to its place in the terrain."""
        shape = np.array([self.cfg.num_rows, self.cfg.num_cols])
        corner = np.array([*(np.array([row, col]) - shape / 2) * self.cfg.size, 0.0])
        for geometry in output.geometries:
            if geometry.geom is not None:
                geometry.geom.pos += corner
        self.terrain_origins[row, col] = output.origin + corner
        for name, patches in self.flat_patches.items():
            own = (output.flat_patches or {}).get(name)
            if own is None:
                own = output.origin[None]
            patches[row, col] = np.resize(own, patches.shape[2:]) + corner

    def _color(self, spec: mujoco.MjSpec, output: TerrainOutput, rng: np.random.Generator) -> None:
        cell_rgb = None
        if self.cfg.color_scheme == "random":
            cell_rgb = random_rgb(rng)
        for geometry in output.geometries:
            geom = geometry.geom
            hfield = geometry.hfield
            if geom is None:
                continue
            if geometry.color is not None:
                geom.rgba[:] = geometry.color
            elif geom.material or self.cfg.color_scheme == "none":
                continue
            elif cell_rgb is not None:
                geom.rgba[:] = [*cell_rgb, 1.0]
            elif hfield is not None:
                noise = np.asarray(hfield.userdata).reshape(hfield.nrow, hfield.ncol)
                heights = geom.pos[2] + noise * hfield.size[2]
                geom.material = color_by_height(spec, noise, hfield.name, heights)
                geom.rgba[:] = [1.0, 1.0, 1.0, 1.0]
            else:
                top = geom.pos[2] + np.abs(geom_rotation(geom))[2] @ geom.size
                geom.rgba[:] = [*height_to_rgb(top), 1.0]

    def _add_border(self, body: mujoco.MjsBody, names: _Names) -> None:
        inner = np.array(self.cfg.size) * [self.cfg.num_rows, self.cfg.num_cols]
        height = max(abs(self.cfg.border_height), _MIN_BORDER_HEIGHT)
        outer = inner + 2 * self.cfg.border_width
        for geom in make_border(body, tuple(outer), tuple(inner), height, (0.0, 0.0, -height / 2)):
            names.give(TerrainGeometry(geom))
            if self.cfg.color_scheme != "none":
                geom.rgba[:] = [*height_to_rgb(0.0), 1.0]


class _Names:
    """Names unnamed elements `terrain_<n>`."""

    def __init__(self) -> None:
        self._count = 0

    def give(self, geometry: TerrainGeometry) -> None:
        if geometry.geom is not None and not geometry.geom.name:
            geometry.geom.name = f"terrain_{self._count}"
            self._count += 1


def _check(cfg: TerrainGeneratorCfg) -> None:
    if not cfg.sub_terrains:
        raise ValueError(
            "TerrainGeneratorCfg.sub_terrains is empty: give at least one kind of terrain, such as "
            "{'flat': BoxFlatTerrainCfg()}."
        )
    if (
        cfg.num_rows < 1
        or cfg.num_cols < 1
        or min(cfg.size) <= 0
        or not 0 <= cfg.border_width < math.inf
    ):
        raise ValueError(
            "TerrainGeneratorCfg needs at least one row and column of cells of positive size and a "
            f"border_width of at least 0, got num_rows={cfg.num_rows}, num_cols={cfg.num_cols}, "
            f"size={cfg.size}, border_width={cfg.border_width}: correct them."
        )
    lower, upper = cfg.difficulty_range
    if not 0.0 <= lower <= upper <= 1.0:
        raise ValueError(
            f"TerrainGeneratorCfg.difficulty_range must be ordered and within [0, 1], got "
            f"{cfg.difficulty_range}: correct it."
        )
    for name, kind in cfg.sub_terrains.items():
        for attribute, value in vars(kind).items():
            numbers = value if isinstance(value, tuple) else (value,)
            if not all(math.isfinite(x) for x in numbers if isinstance(x, float)):
                raise ValueError(
                    f"Sub-terrain '{name}' has {attribute}={value}: give finite numbers."
                )
    shares = [kind.proportion for kind in cfg.sub_terrains.values()]
    if min(shares) < 0 or sum(shares) <= 0:
        raise ValueError(
            f"The proportions of sub_terrains must not be negative and not all zero, got {shares}: "
            "correct them."
        )
    if cfg.color_scheme not in ("height", "random", "none"):
        raise ValueError(
            f"There is no color_scheme '{cfg.color_scheme}': use 'height', 'random' or 'none'."
        )
