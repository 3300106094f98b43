"""Cells of every kind of terrain, and rays that look at them."""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np

from manyworlds.terrains import SubTerrainCfg, TerrainGenerator, TerrainGeneratorCfg
from manyworlds.terrains.config import (
    ALL_TERRAIN_PRESETS,
    box_random_grid,
    hf_pyramid_slope,
    open_stairs,
    pyramid_stairs,
    pyramid_stairs_inv,
    random_rough,
    random_spread_boxes,
)

KINDS: dict[str, Callable[..., SubTerrainCfg]] = ALL_TERRAIN_PRESETS | {
    "stairs_with_holes": lambda **fields: pyramid_stairs(holes=True, **fields),
    "inverted_stairs_with_holes": lambda **fields: pyramid_stairs_inv(holes=True, **fields),
    "grid_with_holes": lambda **fields: box_random_grid(holes=True, **fields),
    "grid_merged": lambda **fields: box_random_grid(merge_similar_heights=True, **fields),
    "boxes_without_floor": lambda **fields: random_spread_boxes(add_floor=False, **fields),
    "open_stairs_down": lambda **fields: open_stairs(inverted=True, **fields),
    "coarse_rough": lambda **fields: random_rough(downsampled_scale=0.4, **fields),
    "slope_without_border": lambda **fields: hf_pyramid_slope(border_width=0.0, **fields),
}
"""Every preset, and what no preset uses."""


class Ground:
    """A compiled terrain that answers how high it is."""

    def __init__(self, spec: mujoco.MjSpec) -> None:
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        mujoco.mj_forward(self.model, self.data)

    def height(self, x: float, y: float) -> float:
        """Height of the surface, found by a ray from above; -inf if there is none."""
        down, geom = np.array([0.0, 0.0, -1.0]), np.zeros(1, np.int32)
        start = np.array([x, y, 10.0])
        distance = mujoco.mj_ray(self.model, self.data, start, down, None, 1, -1, geom, None)
        return 10.0 - distance if geom[0] >= 0 else -np.inf


def generate(
    kinds: dict[str, SubTerrainCfg], **fields: object
) -> tuple[TerrainGenerator, mujoco.MjSpec]:
    """Generate a terrain of 8 m cells; one row and one column per kind unless told otherwise."""
    defaults = {"size": (8.0, 8.0), "seed": 3, "curriculum": True}
    generator = TerrainGenerator(
        TerrainGeneratorCfg(sub_terrains=kinds, **defaults | fields)  # type: ignore[arg-type]
    )
    spec = mujoco.MjSpec()
    generator.compile(spec)
    return generator, spec
