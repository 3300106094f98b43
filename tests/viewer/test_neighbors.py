"""Other worlds in the picture of one."""

from __future__ import annotations

import mujoco
import numpy as np

from manyworlds.scene import Scene
from manyworlds.tasks import load_env_cfg
from manyworlds.viewer.neighbors import add_neighbor
from manyworlds.viewer.world_mirror import WorldMirror


def test_the_ground_is_drawn_once():
    """Add all that can move of another world, and not the terrain, on which both stand."""
    model = Scene(load_env_cfg("Velocity-Flat-Quadruped").scene).compile()
    world = WorldMirror(model)
    mujoco.mj_forward(model, world.data)
    scene, option = mujoco.MjvScene(model, maxgeom=500), mujoco.MjvOption()
    add_neighbor(world, option, scene, np.array([2.0, 0.0, 0.0]), world.data.xpos.copy())
    drawn = {geom.objid for geom in scene.geoms[: scene.ngeom] if geom.rgba[3] > 0}
    bodies = {model.body(model.geom_bodyid[geom]).name for geom in drawn}
    assert "robot/trunk" in bodies and "terrain" not in bodies
