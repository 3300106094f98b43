"""Terrain: planes, generated terrains, and the origins of the worlds on them."""

from manyworlds.terrains.heightfield_terrains import (
    HfDiscreteObstaclesTerrainCfg,
    HfPerlinNoiseTerrainCfg,
    HfPyramidSlopedTerrainCfg,
    HfRandomUniformTerrainCfg,
    HfWaveTerrainCfg,
)
from manyworlds.terrains.primitive_terrains import (
    BoxFlatTerrainCfg,
    BoxInvertedPyramidStairsTerrainCfg,
    BoxNarrowBeamsTerrainCfg,
    BoxNestedRingsTerrainCfg,
    BoxOpenStairsTerrainCfg,
    BoxPyramidStairsTerrainCfg,
    BoxRandomGridTerrainCfg,
    BoxRandomSpreadTerrainCfg,
    BoxRandomStairsTerrainCfg,
    BoxSteppingStonesTerrainCfg,
    BoxTiltedGridTerrainCfg,
)
from manyworlds.terrains.sampled_terrain import HeightFieldCfg, HfSampledTerrainCfg
from manyworlds.terrains.terrain_entity import TerrainEntity, TerrainEntityCfg
from manyworlds.terrains.terrain_generator import (
    FlatPatchSamplingCfg,
    SubTerrainCfg,
    TerrainGenerator,
    TerrainGeneratorCfg,
)

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
    "FlatPatchSamplingCfg",
    "HeightFieldCfg",
    "HfDiscreteObstaclesTerrainCfg",
    "HfPerlinNoiseTerrainCfg",
    "HfPyramidSlopedTerrainCfg",
    "HfRandomUniformTerrainCfg",
    "HfSampledTerrainCfg",
    "HfWaveTerrainCfg",
    "SubTerrainCfg",
    "TerrainEntity",
    "TerrainEntityCfg",
    "TerrainGenerator",
    "TerrainGeneratorCfg",
]
