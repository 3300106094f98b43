"""Other worlds in the picture of one."""

from __future__ import annotations

import mujoco
import numpy as np
import torch

from manyworlds.viewer.model_sync import as_numpy
from manyworlds.viewer.world_mirror import WorldMirror

_KINDS = int(mujoco.mjtCatBit.mjCAT_DYNAMIC) | int(mujoco.mjtCatBit.mjCAT_STATIC)


def nearest_worlds(origins: torch.Tensor, env_idx: int, count: int) -> list[tuple[int, np.ndarray]]:
    """The worlds next to one, but not at the same place.

    Args:
        origins: of all worlds [m], shape (num_envs, 3).
        env_idx: the world in the middle.
        count: largest number of worlds to return.

    Returns:
        Each world and the way to it from the one in the middle [m], shape (3,), the nearest first.
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

    What nothing can move, such as the ground, is there already. What floats is where its world is.
    Bodies that stand on their own joints are at the same place in all worlds, and so are those on
    mocap bodies that no event has put at their world's origin: these are moved by the way to it.

    Args:
        world: the world to add.
        option: groups to draw.
        scene: scene to draw in; geoms beyond its capacity are left out.
        way: from the origin of the scene's own world to that of this one [m], shape (3,).
        home: positions of the bodies of the scene's own world [m], shape (nbody, 3).
    """
    model, first = world.model, scene.ngeom
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
