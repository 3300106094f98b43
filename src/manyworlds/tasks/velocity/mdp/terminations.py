"""Terminations on generated terrain, each booleans of shape [num_envs]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from manyworlds.managers import SceneEntityCfg

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.terrains import TerrainGeneratorCfg

_ROBOT = SceneEntityCfg("robot")


def out_of_terrain_bounds(
    env: ManagerBasedRlEnv, margin: float = 0.3, asset_cfg: SceneEntityCfg = _ROBOT
) -> torch.Tensor:
    """Mask of roots less than `margin` [m] from the terrain's end, border included, [num_envs].

    A plane has no end.
    """
    generator = _generator(env)
    if generator is None:
        return torch.zeros_like(env.reset_buf)
    cells = (generator.num_rows, generator.num_cols)
    limits = [
        count * size / 2.0 + generator.border_width - margin
        for count, size in zip(cells, generator.size, strict=True)
    ]
    return _beyond(env.scene[asset_cfg.name].data.root_link_pos_w, limits)


def terrain_edge_reached(
    env: ManagerBasedRlEnv, threshold_fraction: float = 0.95, asset_cfg: SceneEntityCfg = _ROBOT
) -> torch.Tensor:
    """Mask of roots beyond a fraction of the way to the edge of their cell, shape [num_envs].

    False on a plane.
    """
    generator = _generator(env)
    if generator is None:
        return torch.zeros_like(env.reset_buf)
    limits = [threshold_fraction * size / 2.0 for size in generator.size]
    return _beyond(env.scene[asset_cfg.name].data.root_link_pos_w - env.scene.env_origins, limits)


def _beyond(position: torch.Tensor, limits: list[float]) -> torch.Tensor:
    distance = position[:, :2].abs()
    return (distance[:, 0] > limits[0]) | (distance[:, 1] > limits[1])


def _generator(env: ManagerBasedRlEnv) -> TerrainGeneratorCfg | None:
    terrain = env.scene.terrain
    return None if terrain is None else terrain.cfg.terrain_generator
