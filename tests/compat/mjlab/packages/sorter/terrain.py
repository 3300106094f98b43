"""Ground of our own: shallow bumps, and slabs that get higher."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from mjlab.terrains import BoxFlatTerrainCfg, HfRandomUniformTerrainCfg, TerrainGeneratorCfg
from mjlab.terrains.terrain_generator import (
    FlatPatchSamplingCfg,
    SubTerrainCfg,
    TerrainGeometry,
    TerrainOutput,
)
from mjlab.terrains.utils import make_border, make_plane
from mjlab.utils.color import darken_rgba


@dataclass(kw_only=True)
class SlabsTerrainCfg(SubTerrainCfg):
    """Random slabs around a platform."""

    num_slabs: int = 6
    height_range: tuple[float, float] = (0.005, 0.02)
    platform_width: float = 1.5

    def function(
        self, difficulty: float, spec: mujoco.MjSpec, rng: np.random.Generator
    ) -> TerrainOutput:
        body = spec.body("terrain")
        plane = make_plane(body, self.size, 0.0, center_zero=False)
        geometries = [TerrainGeometry(geom=geom) for geom in plane]
        height = self.height_range[0] + difficulty * (self.height_range[1] - self.height_range[0])
        color = darken_rgba((0.5, 0.5, 0.5, 1.0), 0.2 * difficulty)
        for _ in range(self.num_slabs):
            angle = rng.uniform(0, 2 * np.pi)
            radius = self.platform_width / 2 + rng.uniform(0.3, 0.5)
            x = self.size[0] / 2 + radius * np.cos(angle)
            y = self.size[1] / 2 + radius * np.sin(angle)
            slab = body.add_geom(
                type=mujoco.mjtGeom.mjGEOM_BOX,
                size=(0.2, 0.2, height / 2),
                pos=(x, y, height / 2),
            )
            geometries.append(TerrainGeometry(geom=slab, color=color))
        border = make_border(
            body,
            self.size,
            (self.size[0] - 0.2, self.size[1] - 0.2),
            0.05,
            (self.size[0] / 2, self.size[1] / 2, 0.025),
        )
        geometries += [TerrainGeometry(geom=geom, color=(0.3, 0.2, 0.2, 1.0)) for geom in border]
        origin = np.array([self.size[0] / 2, self.size[1] / 2, 0.0])
        return TerrainOutput(origin=origin, geometries=geometries)


SORTER_TERRAINS_CFG = TerrainGeneratorCfg(
    seed=3,
    size=(4.0, 4.0),
    border_width=1.0,
    num_rows=2,
    num_cols=3,
    curriculum=True,
    sub_terrains={
        "flat": BoxFlatTerrainCfg(proportion=0.3),
        "slabs": SlabsTerrainCfg(proportion=0.4),
        "bumps": HfRandomUniformTerrainCfg(
            proportion=0.3,
            noise_range=(0.0, 0.01),
            noise_step=0.005,
            border_width=0.25,
            flat_patch_sampling={
                "spawn": FlatPatchSamplingCfg(num_patches=4, patch_radius=0.2, max_height_diff=0.05)
            },
        ),
    },
    add_lights=True,
)
