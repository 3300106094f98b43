"""Put different objects into different worlds, and exchange them while the worlds run.

    python examples/05_variants.py

You learn that worlds of one compiled model may have a ball, a box, a mesh, or no object at all;
that each world equals its variant compiled alone; and that a world gets another variant at any
time, or at random when its episode begins, without compilation.
"""

from __future__ import annotations

import mujoco
import torch

from manyworlds.entity import EntityCfg, PropCfg, VariantEntityCfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, mdp
from manyworlds.managers import EventTermCfg, SceneEntityCfg
from manyworlds.scene import SceneCfg
from manyworlds.terrains import TerrainEntityCfg


def wedge() -> mujoco.MjSpec:
    """Return a mesh with a free joint."""
    spec = mujoco.MjSpec()
    mesh = spec.add_mesh(name="wedge")
    mesh.make_wedge(resolution=(8, 8), fov=(60.0, 60.0), gamma=0.0)
    mesh.scale[:] = (0.1, 0.1, 0.1)
    body = spec.worldbody.add_body(name="prop")
    body.add_freejoint()
    body.add_geom(name="prop", type=mujoco.mjtGeom.mjGEOM_MESH, meshname="wedge", mass=0.3)
    return spec


VARIANTS = {
    "ball": PropCfg.primitive("sphere", size=0.05, mass=0.2).spec_fn,
    "box": PropCfg.primitive("box", size=(0.05, 0.03, 0.04), mass=0.5).spec_fn,
    "wedge": wedge,
    "nothing": None,
}


def task(num_envs: int, draw: bool = False) -> ManagerBasedRlEnvCfg:
    """Return an environment in which objects fall; with `draw`, resets exchange them."""
    thing = VariantEntityCfg(
        variants=VARIANTS,
        assignment={"box": 2.0},  # twice as many boxes as others
        init_state=EntityCfg.InitialStateCfg(pos=(0.0, 0.0, 0.3)),
    )
    cfg = ManagerBasedRlEnvCfg(
        decimation=5,
        seed=1,
        scene=SceneCfg(num_envs=num_envs, entities={"thing": thing}, terrain=TerrainEntityCfg()),
        events={"home": EventTermCfg(func=mdp.reset_scene_to_default, mode="reset")},
    )
    if draw:
        cfg.events["exchange"] = EventTermCfg(
            func=mdp.randomize_variant,
            mode="reset",
            params={"asset_cfg": SceneEntityCfg("thing"), "weights": {"nothing": 0.0}},
        )
    return cfg


def fall(env: ManagerBasedRlEnv, seconds: float) -> torch.Tensor:
    """Let the objects fall; return the heights of their roots [m], shape [num_envs]."""
    nothing = torch.zeros(env.num_envs, env.action_manager.total_action_dim)
    for _ in range(round(seconds / env.step_dt)):
        env.step(nothing)
    return env.scene.entity("thing").data.root_link_pos_w[:, 2]


if __name__ == "__main__":
    env = ManagerBasedRlEnv(task(num_envs=10), device="cpu")
    names = [*VARIANTS]
    given = env.sim.world_to_variant["thing"]
    print("compiled for:", [names[i] for i in given.tolist()])
    heights = fall(env, seconds=1.0)
    for i, name in enumerate(names):
        if (given == i).any():
            print(f"{name:8} lies at {heights[given == i][0]:.3f} m")
    env.sim.assign_variants("thing", [0, 1], [names.index("nothing"), names.index("ball")])
    print("exchanged:   ", [names[i] for i in env.sim.world_to_variant["thing"].tolist()])
    env = ManagerBasedRlEnv(task(num_envs=10, draw=True), device="cpu")
    for _ in range(3):
        env.reset()
        print("after resets:", [names[i] for i in env.sim.world_to_variant["thing"].tolist()])
