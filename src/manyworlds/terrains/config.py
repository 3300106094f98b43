"""Predefined kinds of terrain, and predefined terrains that combine them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from manyworlds.terrains import heightfield_terrains as hf
from manyworlds.terrains import primitive_terrains as box
from manyworlds.terrains.terrain_generator import SubTerrainCfg, TerrainGeneratorCfg

_F = TypeVar("_F", bound=Callable[..., SubTerrainCfg])

ALL_TERRAIN_PRESETS: dict[str, Callable[..., SubTerrainCfg]] = {}
"""Functions that create a kind of terrain, by name; their arguments override its fields."""


def terrain_preset(fn: _F) -> _F:
    """Register a function as a preset, under its own name."""
    ALL_TERRAIN_PRESETS[fn.__name__] = fn
    return fn


def _make(kind: Callable[..., Any], overrides: dict[str, Any], **defaults: Any) -> Any:
    return kind(**defaults | overrides)


@terrain_preset
def flat(**overrides: Any) -> box.BoxFlatTerrainCfg:
    """Flat ground."""
    return _make(box.BoxFlatTerrainCfg, overrides)


_STAIRS: dict[str, Any] = {
    "step_height_range": (0.0, 0.2),
    "step_width": 0.3,
    "platform_width": 3.0,
    "border_width": 1.0,
}


@terrain_preset
def pyramid_stairs(**overrides: Any) -> box.BoxPyramidStairsTerrainCfg:
    """Stairs with steps of up to 20 cm and treads of 30 cm, up to a platform."""
    return _make(box.BoxPyramidStairsTerrainCfg, overrides, **_STAIRS)


@terrain_preset
def pyramid_stairs_inv(**overrides: Any) -> box.BoxInvertedPyramidStairsTerrainCfg:
    """The same stairs, down to a platform."""
    return _make(box.BoxInvertedPyramidStairsTerrainCfg, overrides, **_STAIRS)


_SLOPE: dict[str, Any] = {
    "slope_range": (0.0, 0.7),
    "platform_width": 2.0,
    "border_width": 0.25,
}


@terrain_preset
def hf_pyramid_slope(**overrides: Any) -> hf.HfPyramidSlopedTerrainCfg:
    """Slopes of up to 35 degrees, up to a platform."""
    return _make(hf.HfPyramidSlopedTerrainCfg, overrides, **_SLOPE)


@terrain_preset
def hf_pyramid_slope_inv(**overrides: Any) -> hf.HfPyramidSlopedTerrainCfg:
    """The same slopes, down to a platform."""
    return _make(hf.HfPyramidSlopedTerrainCfg, overrides, inverted=True, **_SLOPE)


@terrain_preset
def random_rough(**overrides: Any) -> hf.HfRandomUniformTerrainCfg:
    """Uneven ground with heights of 2 to 10 cm, at every difficulty."""
    return _make(
        hf.HfRandomUniformTerrainCfg,
        overrides,
        noise_range=(0.02, 0.10),
        noise_step=0.02,
        border_width=0.25,
    )


@terrain_preset
def wave_terrain(**overrides: Any) -> hf.HfWaveTerrainCfg:
    """Crossing waves of up to 20 cm."""
    return _make(
        hf.HfWaveTerrainCfg,
        overrides,
        amplitude_range=(0.0, 0.2),
        num_waves=4,
        border_width=0.25,
    )


@terrain_preset
def discrete_obstacles(**overrides: Any) -> hf.HfDiscreteObstaclesTerrainCfg:
    """Forty low obstacles and shallow pits."""
    return _make(
        hf.HfDiscreteObstaclesTerrainCfg,
        overrides,
        obstacle_width_range=(0.3, 1.0),
        obstacle_height_range=(0.05, 0.3),
        num_obstacles=40,
        border_width=0.25,
    )


@terrain_preset
def perlin_noise(**overrides: Any) -> hf.HfPerlinNoiseTerrainCfg:
    """Rolling ground with heights of up to 1 m."""
    return _make(
        hf.HfPerlinNoiseTerrainCfg,
        overrides,
        height_range=(0.0, 1.0),
        persistence=0.3,
        border_width=0.5,
    )


@terrain_preset
def box_random_grid(**overrides: Any) -> box.BoxRandomGridTerrainCfg:
    """Columns of 40 cm, up to 30 cm above or below the ground."""
    return _make(
        box.BoxRandomGridTerrainCfg, overrides, grid_width=0.4, grid_height_range=(0.0, 0.3)
    )


@terrain_preset
def random_spread_boxes(**overrides: Any) -> box.BoxRandomSpreadTerrainCfg:
    """Eighty boxes of up to 30 cm, with random yaw."""
    return _make(
        box.BoxRandomSpreadTerrainCfg,
        overrides,
        num_boxes=80,
        box_width_range=(0.1, 1.0),
        box_length_range=(0.1, 2.0),
        box_height_range=(0.05, 0.3),
    )


@terrain_preset
def open_stairs(**overrides: Any) -> box.BoxOpenStairsTerrainCfg:
    """Thin treads, up to a platform."""
    return _make(box.BoxOpenStairsTerrainCfg, overrides, inverted=False)


@terrain_preset
def random_stairs(**overrides: Any) -> box.BoxRandomStairsTerrainCfg:
    """Stairs with random steps of 10 to 30 cm."""
    return _make(box.BoxRandomStairsTerrainCfg, overrides)


@terrain_preset
def stepping_stones(**overrides: Any) -> box.BoxSteppingStonesTerrainCfg:
    """Stones of 80 to 40 cm, which differ by up to 20 cm, with gaps of 20 to 50 cm."""
    return _make(box.BoxSteppingStonesTerrainCfg, overrides, stone_size_variation=0.2)


@terrain_preset
def narrow_beams(**overrides: Any) -> box.BoxNarrowBeamsTerrainCfg:
    """Twelve crossing beams, 80 to 20 cm wide."""
    return _make(box.BoxNarrowBeamsTerrainCfg, overrides, num_beams=12, beam_width_range=(0.2, 0.8))


@terrain_preset
def nested_rings(**overrides: Any) -> box.BoxNestedRingsTerrainCfg:
    """Eight rings of different heights, with gaps of 10 to 40 cm."""
    return _make(box.BoxNestedRingsTerrainCfg, overrides, num_rings=8, gap_range=(0.1, 0.4))


@terrain_preset
def tilted_grid(**overrides: Any) -> box.BoxTiltedGridTerrainCfg:
    """Tiles of 1 m, tilted by up to 20 degrees, at heights of up to 30 cm."""
    return _make(box.BoxTiltedGridTerrainCfg, overrides, tilt_range_deg=20.0, height_range=0.3)


def _field(
    sub_terrains: dict[str, SubTerrainCfg],
    num_cols: int,
    curriculum: bool = False,
    add_lights: bool = True,
) -> TerrainGeneratorCfg:
    """Return a terrain of ten rows of cells of 8 m."""
    return TerrainGeneratorCfg(
        size=(8.0, 8.0),
        border_width=20.0,
        num_rows=10,
        num_cols=num_cols,
        sub_terrains=sub_terrains,
        curriculum=curriculum,
        add_lights=add_lights,
    )


def _walking(step_height: float, slope: float, add_lights: bool = True) -> TerrainGeneratorCfg:
    """Return stairs, slopes and uneven ground, with a maximum height of steps [m] and slope."""
    steps: dict[str, Any] = {"proportion": 0.2, "step_height_range": (0.0, step_height)}
    slopes: dict[str, Any] = {"proportion": 0.1, "slope_range": (0.0, slope)}
    kinds = {
        "flat": flat(proportion=0.2),
        "pyramid_stairs": pyramid_stairs(**steps),
        "pyramid_stairs_inv": pyramid_stairs_inv(**steps),
        "hf_pyramid_slope": hf_pyramid_slope(**slopes),
        "hf_pyramid_slope_inv": hf_pyramid_slope_inv(**slopes),
        "random_rough": random_rough(proportion=0.1),
        "wave_terrain": wave_terrain(proportion=0.1),
    }
    return _field(kinds, num_cols=20, add_lights=add_lights)


def _stairs(
    proportion: float, heights: tuple[float, float], tread: float, platform: float, border: float
) -> box.BoxPyramidStairsTerrainCfg:
    return pyramid_stairs(
        proportion=proportion,
        step_height_range=heights,
        step_width=tread,
        platform_width=platform,
        border_width=border,
    )


ROUGH_TERRAINS_CFG = _walking(step_height=0.1, slope=1.0)
"""Terrain of legged robots: stairs with low steps, slopes of up to 45 degrees, uneven ground."""

HIGH_STEPS_TERRAINS_CFG = _walking(step_height=0.2, slope=0.7, add_lights=False)
"""Training terrain of this package's velocity tasks: the same kinds with steps of up to 20 cm and
slopes of up to 35 degrees."""

STAIRS_TERRAINS_CFG = _field(
    {
        "flat": flat(proportion=0.25),
        "easy_stairs": _stairs(0.35, (0.02, 0.05), 0.4, 3.0, 1.0),
        "moderate_stairs": _stairs(0.25, (0.05, 0.08), 0.35, 2.5, 0.8),
        "challenging_stairs": _stairs(0.15, (0.08, 0.1), 0.3, 2.0, 0.5),
    },
    num_cols=4,
    curriculum=True,
)
"""Flat ground and three kinds of stairs, in four columns of ten levels."""

ALL_TERRAINS_CFG = _field(
    {name: fn() for name, fn in ALL_TERRAIN_PRESETS.items()}, num_cols=len(ALL_TERRAIN_PRESETS)
)
"""Every preset, in as many columns; with `curriculum`, in one column each."""
