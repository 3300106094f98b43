"""Neighbors of the world that is drawn."""

from __future__ import annotations

import mujoco
import numpy as np
import torch

from manyworlds.viewer.model_sync import as_numpy
from manyworlds.viewer.world_mirror import WorldMirror

_KINDS = int(mujoco.mjtCatBit.mjCAT_DYNAMIC) | int(mujoco.mjtCatBit.mjCAT_STATIC)


def nearest_worlds(origins: torch.Tensor, env_idx: int, count: int) -> list[tuple[int, np.ndarray]]:
    """Return the nearest worlds of one, without those at the same place.

    Args:
        origins: origins of all worlds [m], shape (num_envs, 3).
        env_idx: index of the world.
        count: largest number of worlds to return.

    Returns:
        Nearest worlds in order, each with its displacement from `env_idx` [m], shape (3,).
    """
    ways = as_numpy(origins - origins[env_idx])
    apart = np.linalg.norm(ways, axis=1)
    near = np.argsort(apart, kind="stable")
    return [(int(world), ways[world]) for world in near[apart[near] > 0][:count]]


def add_neighbor(
    world: WorldMirror,
    option: mujoco.MjvOption,
    scene: mujoco.MjvScene,
    way: np.ndarray,
    home: np.ndarray,
) -> None:
    """Draw the bodies of a world into a scene that has another world already.

    Static bodies, such as the ground, are there already. Floating bodies are drawn where they are.
    Bodies with other joints have the same position in all worlds, like mocap bodies that no event
    has moved to their world's origin: these are displaced by `way`.

    Args:
        world: world to add.
        option: groups to draw.
        scene: scene to draw in; geoms beyond its capacity are left out.
        way: displacement from the origin of the scene's own world to that of this one [m], shape
            (3,).
        home: positions of the bodies of the scene's own world [m], shape (nbody, 3).
    """
    model = world.model
    first = scene.ngeom
    mujoco.mjv_addGeoms(model, world.data, option, mujoco.MjvPerturb(), _KINDS, scene)
    moved = world.data.xpos - home
    left_behind = np.linalg.norm(moved, axis=1) < np.linalg.norm(moved - way, axis=1)
    free = model.jnt_bodyid[model.jnt_type == mujoco.mjtJoint.mjJNT_FREE]
    left_behind[free] = False
    movable = {*model.body_rootid[model.jnt_bodyid], *np.flatnonzero(model.body_mocapid >= 0)}
    for geom in scene.geoms[first : scene.ngeom]:
        root = model.body_rootid[model.geom_bodyid[geom.objid]]
        if root not in movable:
            geom.rgba[3] = 0.0
        elif left_behind[root]:
            geom.pos[:] += way
