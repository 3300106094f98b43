"""Height fields that are sampled from arrays, images, functions, meshes and models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from manyworlds.entity.entity import EntityCfg
from manyworlds.spec.prop_choices import BASE_THICKNESSES, RESOLUTIONS
from manyworlds.terrains.colors import color_by_height
from manyworlds.terrains.height_sources import GeomFilter, HeightSource, sample_heights
from manyworlds.terrains.heightfield_terrains import add_height_field
from manyworlds.terrains.terrain_generator import SubTerrainCfg, TerrainOutput
from manyworlds.validation.checks import check_count


@dataclass(kw_only=True)
class HfSampledTerrainCfg(SubTerrainCfg):
    """A height field whose heights are sampled from a source.

    It fills a cell of a generated terrain, or, as a `HeightFieldCfg`, is an entity of its own.
    """

    source: HeightSource
    """Array of heights [m] of shape [num_y, num_x], whose first row is at the lowest y; image file,
    whose upper row is at the highest y, and in which black is 0 and white `image_height`; mesh
    file; model file, `MjSpec` or `MjModel`, in its initial state; or function of arrays x and y
    [m], which returns heights of their shape. Arrays and images fill the cell; the others have
    coordinates. NaN counts as no surface."""
    source_center: tuple[float, float] = (0.0, 0.0)
    """Point of the source that is at the center of the cell [m]."""
    resolution: int | tuple[int, int] = 64
    """Number of samples along both sides, or along x and y, from 2 to 512."""
    fill: float = 0.0
    """Height where the source has no surface [m]."""
    image_height: float = 1.0
    """Height of white in an image [m]."""
    groups: tuple[int, ...] | None = None
    """Groups of the geoms of a model that are sampled; None for all."""
    include: tuple[str, ...] = ()
    """Regular expressions of the names of geoms, or of their bodies, that are sampled; empty for
    all."""
    exclude: tuple[str, ...] = ()
    """Likewise, of geoms that are left out."""
    base_thickness: float = 0.1
    """Depth of solid ground below the lowest sample [m], from 0.01 to 1."""

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Check the settings.

        Raises:
            ValueError: a setting is out of bounds.
        """
        low, high = RESOLUTIONS
        for count in self.counts:
            check_count("The resolution of a height field", count, low)
            if count > high:
                raise ValueError(
                    f"The resolution of a height field must be at most {high}, got {count}: use "
                    "fewer samples, or several cells."
                )
        least, most = BASE_THICKNESSES
        if not least <= self.base_thickness <= most:
            raise ValueError(
                f"The base_thickness of a height field must be in [{least}, {most}] m, got "
                f"{self.base_thickness}."
            )
        if not all(0.0 < length < math.inf for length in self.size):
            raise ValueError(f"The size of a height field must be positive, got {self.size}.")
        if not math.isfinite(self.fill):
            raise ValueError(f"The fill of a height field must be finite, got {self.fill}.")

    @property
    def counts(self) -> tuple[int, int]:
        """Number of samples along x and y."""
        if isinstance(self.resolution, Sequence):
            num_x, num_y = self.resolution
            return num_x, num_y
        return self.resolution, self.resolution

    def axes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions of the samples in the source [m], shapes [num_x] and [num_y]."""
        self.check()
        x, y = self.source_center
        width, length = self.size
        num_x, num_y = self.counts
        return (
            np.linspace(x - width / 2, x + width / 2, num_x),
            np.linspace(y - length / 2, y + length / 2, num_y),
        )

    def heights(self) -> np.ndarray:
        """Sample the heights [m], shape [num_y, num_x]; the first row is at the lowest y."""
        x, y = self.axes()
        return sample_heights(
            self.source,
            x,
            y,
            fill=self.fill,
            image_height=self.image_height,
            geoms=GeomFilter(groups=self.groups, include=self.include, exclude=self.exclude),
        )

    def function(
        self, difficulty: float, spec: mujoco.MjSpec, rng: np.random.Generator
    ) -> TerrainOutput:
        """Add the height field, which is the same at every difficulty; see base class."""
        heights = self.heights()
        hfield, geom = add_height_field(spec, heights, self.size, self.center, self.base_thickness)
        middle = float(heights[heights.shape[0] // 2, heights.shape[1] // 2])
        return self.output(middle, [geom], rng, hfield)


@dataclass(kw_only=True)
class HeightFieldSpec:
    """Function that makes the spec of a height field on a body `terrain`."""

    terrain: HfSampledTerrainCfg
    """Source, extent and samples; the center is at the origin."""

    def __call__(self) -> mujoco.MjSpec:
        """Make the spec."""
        spec = mujoco.MjSpec()
        spec.worldbody.add_body(name="terrain")
        heights = self.terrain.heights()
        hfield, geom = add_height_field(
            spec, heights, self.terrain.size, (0.0, 0.0), self.terrain.base_thickness
        )
        geom.name = "terrain"
        shares = np.asarray(hfield.userdata).reshape(heights.shape)
        geom.material = color_by_height(spec, shares, hfield.name, heights)
        geom.rgba[:] = [1.0, 1.0, 1.0, 1.0]
        return spec


@dataclass
class HeightFieldCfg(EntityCfg):
    """Configuration of a height field that is an entity; its `spec_fn` is a `HeightFieldSpec`."""

    @classmethod
    def sample(
        cls,
        source: HeightSource,
        size: tuple[float, float] = (10.0, 10.0),
        resolution: int | tuple[int, int] = 64,
        *,
        source_center: tuple[float, float] = (0.0, 0.0),
        fill: float = 0.0,
        image_height: float = 1.0,
        groups: tuple[int, ...] | None = None,
        include: tuple[str, ...] = (),
        exclude: tuple[str, ...] = (),
        base_thickness: float = 0.1,
        init_state: EntityCfg.InitialStateCfg | None = None,
    ) -> HeightFieldCfg:
        """Make a height field; see `HfSampledTerrainCfg` for the arguments.

        Raises:
            ValueError: a setting is out of bounds.
        """
        terrain = HfSampledTerrainCfg(
            source=source,
            size=size,
            resolution=resolution,
            source_center=source_center,
            fill=fill,
            image_height=image_height,
            groups=groups,
            include=include,
            exclude=exclude,
            base_thickness=base_thickness,
        )
        return cls(
            init_state=init_state or EntityCfg.InitialStateCfg(),
            spec_fn=HeightFieldSpec(terrain=terrain),
        )
