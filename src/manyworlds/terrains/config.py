"""Predefined kinds of terrain, and predefined terrains that combine them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from manyworlds.terrains import heightfield_terrains as hf
from manyworlds.terrains import primitive_terrains as box
from manyworlds.terrains.terrain_generator import SubTerrainCfg, TerrainGeneratorCfg

_F = TypeVar("_F", bound=Callable[..., SubTerrainCfg])
_CfgT = TypeVar("_CfgT", bound=SubTerrainCfg)

ALL_TERRAIN_PRESETS: dict[str, Callable[..., SubTerrainCfg]] = {}
"""Functions that create a kind of terrain, by name; their arguments override its fields."""


def terrain_preset(fn: _F) -> _F:
    """Register a function as a preset, under its own name."""
    ALL_TERRAIN_PRESETS[fn.__name__] = fn
    return fn


def _make(kind: Callable[..., _CfgT], overrides: dict[str, object], **defaults: object) -> _CfgT:
    return kind(**defaults | overrides)


@terrain_preset
def flat(**overrides: object) -> box.BoxFlatTerrainCfg:
    """Flat ground."""
    return _make(box.BoxFlatTerrainCfg, overrides)


_STAIRS: dict[str, object] = {
    "step_height_range": (0.0, 0.2),
    "step_width": 0.3,
    "platform_width": 3.0,
    "border_width": 1.0,
}


@terrain_preset
def pyramid_stairs(**overrides: object) -> box.BoxPyramidStairsTerrainCfg:
    """Stairs with steps of up to 20 cm and treads of 30 cm, up to a platform."""
    return _make(box.BoxPyramidStairsTerrainCfg, overrides, **_STAIRS)


@terrain_preset
def pyramid_stairs_inv(**overrides: object) -> box.BoxInvertedPyramidStairsTerrainCfg:
    """The same stairs, down to a platform."""
    return _make(box.BoxInvertedPyramidStairsTerrainCfg, overrides, **_STAIRS)


_SLOPE: dict[str, object] = {
    "slope_range": (0.0, 0.7),
    "platform_width": 2.0,
    "border_width": 0.25,
}


@terrain_preset
def hf_pyramid_slope(**overrides: object) -> hf.HfPyramidSlopedTerrainCfg:
    """Slopes of up to 35 degrees, up to a platform."""
    return _make(hf.HfPyramidSlopedTerrainCfg, overrides, **_SLOPE)


@terrain_preset
def hf_pyramid_slope_inv(**overrides: object) -> hf.HfPyramidSlopedTerrainCfg:
    """The same slopes, down to a platform."""
    return _make(hf.HfPyramidSlopedTerrainCfg, overrides, inverted=True, **_SLOPE)


@terrain_preset
def random_rough(**overrides: object) -> hf.HfRandomUniformTerrainCfg:
    """Uneven ground with heights of 2 to 10 cm, at every difficulty."""
    return _make(
        hf.HfRandomUniformTerrainCfg,
        overrides,
        noise_range=(0.02, 0.10),
        noise_step=0.02,
        border_width=0.25,
    )


@terrain_preset
def wave_terrain(**overrides: object) -> hf.HfWaveTerrainCfg:
    """Crossing waves of up to 20 cm."""
    return _make(
        hf.HfWaveTerrainCfg,
        overrides,
        amplitude_range=(0.0, 0.2),
        num_waves=4,
        border_width=0.25,
    )


@terrain_preset
def discrete_obstacles(**overrides: object) -> hf.HfDiscreteObstaclesTerrainCfg:
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
def perlin_noise(**overrides: object) -> hf.HfPerlinNoiseTerrainCfg:
    """Rolling ground with heights of up to 1 m."""
    return _make(
        hf.HfPerlinNoiseTerrainCfg,
        overrides,
        height_range=(0.0, 1.0),
        scale=4.0,
        border_width=0.25,
    )


@terrain_preset
def box_random_grid(**overrides: object) -> box.BoxRandomGridTerrainCfg:
    """Columns of up to 20 cm above or below the ground, merged if nearly level."""
    return _make(
        box.BoxRandomGridTerrainCfg,
        overrides,
        grid_width=0.5,
        grid_height_range=(0.0, 0.2),
        platform_width=1.0,
        merge_similar_heights=True,
    )


@terrain_preset
def random_spread_boxes(**overrides: object) -> box.BoxRandomSpreadTerrainCfg:
    """Sixty boxes of up to 60 cm, with random yaw."""
    return _make(box.BoxRandomSpreadTerrainCfg, overrides, box_height_range=(0.05, 0.6))


@terrain_preset
def open_stairs(**overrides: object) -> box.BoxOpenStairsTerrainCfg:
    """Thin treads, down to a platform."""
    return _make(box.BoxOpenStairsTerrainCfg, overrides)


@terrain_preset
def random_stairs(**overrides: object) -> box.BoxRandomStairsTerrainCfg:
    """Stairs with random steps of 10 to 30 cm."""
    return _make(box.BoxRandomStairsTerrainCfg, overrides)


@terrain_preset
def stepping_stones(**overrides: object) -> box.BoxSteppingStonesTerrainCfg:
    """Stones of 80 to 40 cm with gaps of 20 to 50 cm."""
    return _make(box.BoxSteppingStonesTerrainCfg, overrides)


@terrain_preset
def narrow_beams(**overrides: object) -> box.BoxNarrowBeamsTerrainCfg:
    """Crossing beams, 40 to 20 cm wide."""
    return _make(box.BoxNarrowBeamsTerrainCfg, overrides)


@terrain_preset
def nested_rings(**overrides: object) -> box.BoxNestedRingsTerrainCfg:
    """Five rings of different heights."""
    return _make(box.BoxNestedRingsTerrainCfg, overrides)


@terrain_preset
def tilted_grid(**overrides: object) -> box.BoxTiltedGridTerrainCfg:
    """Tiles of 1 m, tilted by up to 15 degrees."""
    return _make(box.BoxTiltedGridTerrainCfg, overrides)


ROUGH_TERRAINS_CFG = TerrainGeneratorCfg(
    size=(8.0, 8.0),
    border_width=20.0,
    num_rows=10,
    num_cols=20,
    sub_terrains={
        "flat": flat(proportion=0.2),
        "pyramid_stairs": pyramid_stairs(proportion=0.2),
        "pyramid_stairs_inv": pyramid_stairs_inv(proportion=0.2),
        "hf_pyramid_slope": hf_pyramid_slope(proportion=0.1),
        "hf_pyramid_slope_inv": hf_pyramid_slope_inv(proportion=0.1),
        "random_rough": random_rough(proportion=0.1),
        "wave_terrain": wave_terrain(proportion=0.1),
    },
)
"""Common training terrain for legged robots: stairs, slopes and uneven ground."""

STAIRS_TERRAINS_CFG = TerrainGeneratorCfg(
    size=(8.0, 8.0),
    border_width=20.0,
    num_rows=10,
    num_cols=4,
    curriculum=True,
    sub_terrains={
        "flat": flat(proportion=0.25),
        "pyramid_stairs": pyramid_stairs(proportion=0.25),
        "pyramid_stairs_inv": pyramid_stairs_inv(proportion=0.25),
        "random_stairs": random_stairs(proportion=0.25, step_height_range=(0.05, 0.2)),
    },
)
"""Flat ground and three kinds of stairs, in four columns of ten levels."""

ALL_TERRAINS_CFG = TerrainGeneratorCfg(
    size=(8.0, 8.0),
    border_width=20.0,
    num_rows=10,
    num_cols=len(ALL_TERRAIN_PRESETS),
    curriculum=True,
    sub_terrains={name: fn(proportion=1.0) for name, fn in ALL_TERRAIN_PRESETS.items()},
)
"""Every preset, in one column of ten levels each."""
