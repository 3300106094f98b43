"""Props of random shape, and scenes that hold them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import mujoco
import numpy as np

from manyworlds.entity import EntityCfg, VariantEntityCfg
from manyworlds.scene import Scene, SceneCfg
from manyworlds.sim import NanGuardCfg, Simulation, SimulationCfg

MESH = mujoco.mjtGeom.mjGEOM_MESH
DROP = EntityCfg.InitialStateCfg(pos=(0.0, 0.0, 0.15))


def add_rock(spec: mujoco.MjSpec, name: str, seed: int, size: float = 0.05) -> str:
    """Add a bumpy mesh whose frame is not its center of mass; return its name."""
    rng = np.random.default_rng(seed)
    mesh = spec.add_mesh(name=name)
    mesh.make_sphere(subdivision=1)
    vertices = np.array(mesh.uservert).reshape(-1, 3)
    vertices *= size * rng.uniform(0.7, 1.3, 3) * rng.uniform(0.8, 1.2, (len(vertices), 1))
    mesh.uservert = (vertices + rng.uniform(-0.02, 0.02, 3)).ravel()
    return name


def prop(seed: int, edit: Callable[[mujoco.MjSpec], Any] | None = None, **geom: Any) -> Any:
    """Return a function that makes a free prop of one rock."""

    def make() -> mujoco.MjSpec:
        spec = mujoco.MjSpec()
        body = spec.worldbody.add_body(name="prop")
        body.add_freejoint()
        rock = add_rock(spec, "rock", seed)
        body.add_geom(name="shell", type=MESH, meshname=rock, **geom)
        if edit is not None:
            edit(spec)
        return spec

    return make


def floor(spec: mujoco.MjSpec) -> None:
    """Add a floor and two posts to bump into."""
    world = spec.worldbody
    world.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 0.1])
    for x in (-0.06, 0.08):
        world.add_geom(type=mujoco.mjtGeom.mjGEOM_CAPSULE, size=[0.01, 0.04, 0], pos=[x, 0.02, 0.0])


def build(
    entities: Mapping[str, EntityCfg],
    num_envs: int = 1,
    engine: str = "native",
    nan_guard: NanGuardCfg | None = None,
    **scene: Any,
) -> tuple[Scene, Simulation]:
    """Build a scene on the floor, and its simulation."""
    cfg = SceneCfg(
        num_envs=num_envs,
        entities=dict(entities),
        **{"spec_fn": floor, "env_spacing": 0.0, **scene},
    )
    built = Scene(cfg)
    info = built.collect_variant_info()
    sim_cfg = SimulationCfg(engine=engine)  # type: ignore[arg-type]
    sim_cfg.nan_guard = nan_guard or sim_cfg.nan_guard
    sim = Simulation(num_envs, sim_cfg, spec=built.spec, variant_info=info, device="cpu")
    built.initialize(sim.mj_model, sim.model, sim.data)
    return built, sim


def variants(**kwargs: Any) -> VariantEntityCfg:
    """Return the configuration of a prop above the floor; `num` worlds go round by turns."""
    names = list(kwargs["variants"])
    turns = {"assignment": lambda n: [w % len(names) for w in range(n)]}
    return VariantEntityCfg(**{"init_state": DROP, **turns, **kwargs})
