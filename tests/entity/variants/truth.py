"""Comparison of worlds with scenes in which the same variants are compiled alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
import torch

from manyworlds.entity import EntityCfg, VariantEntityCfg
from manyworlds.scene import Scene
from manyworlds.sim import Simulation
from tests.entity.variants.props import build

# Bounding volumes and ids of assets differ in number; only sleeping trees, which the native engine
# does not have, are put to sleep by `dof_length`.
_OTHER = {"bvh_aabb", "geom_dataid", "geom_matid", "dof_length"}


def alone(cfgs: Mapping[str, EntityCfg], sim: Simulation, world: int) -> dict[str, EntityCfg]:
    """Return the entities of one world, each as the variant that it is there; absent ones not."""
    found: dict[str, EntityCfg] = {}
    for name, cfg in cfgs.items():
        if not isinstance(cfg, VariantEntityCfg):
            found[name] = cfg
            continue
        variant = list(cfg.variants)[int(sim.world_to_variant[name][world])]
        if cfg.variants[variant] is not None:
            found[name] = cfg.of_variant(variant)
    return found


def assert_exact(
    cfgs: Mapping[str, EntityCfg], num_envs: int, steps: int = 300, **kwargs: Any
) -> tuple[Scene, Simulation]:
    """Compare each world with its variants compiled alone: model fields, then its path."""
    scene, sim = build(cfgs, num_envs, **kwargs)
    for world in range(num_envs):
        single = build(alone(cfgs, sim, world), **kwargs)[1]
        assert_same_fields(sim, world, single.mj_model)
        assert_same_path(sim, world, single.mj_model, steps)
    return scene, sim


def geoms_of(model: mujoco.MjModel, rows: dict[str, np.ndarray]) -> list[int]:
    """List the geoms that are there, by body and role."""
    collides = (rows["geom_contype"] != 0) | (rows["geom_conaffinity"] != 0)
    there = (rows["geom_dataid"] >= 0) | (rows["geom_type"] != mujoco.mjtGeom.mjGEOM_MESH)
    there &= collides | (rows["geom_rgba"][:, 3] > 0)
    order = np.lexsort((np.arange(model.ngeom), collides, model.geom_bodyid))
    return [i for i in order.tolist() if there[i]]


def row_of(sim: Simulation, field: str, world: int) -> np.ndarray:
    """Return a model field of one world in double precision."""
    rows = sim._engine.model_rows()
    compiled = np.asarray(getattr(sim.mj_model, field))
    return rows[field][world].reshape(compiled.shape) if field in rows else compiled


def assert_same_fields(sim: Simulation, world: int, single: mujoco.MjModel) -> None:
    """Compare all fields that any world has rows of, bit for bit."""
    names = ("geom_contype", "geom_conaffinity", "geom_dataid", "geom_rgba", "geom_type")
    ours = geoms_of(sim.mj_model, {name: row_of(sim, name, world) for name in names})
    theirs = geoms_of(single, {name: getattr(single, name) for name in names})
    for field in sim.expanded_fields - _OTHER:
        value, truth = row_of(sim, field, world), getattr(single, field)
        if field.startswith("geom_"):
            value, truth = value[ours], truth[theirs]
        elif single.nbody < sim.mj_model.nbody:
            continue
        np.testing.assert_array_equal(value, truth, err_msg=f"{field} of world {world}")
    dataid, types = row_of(sim, "geom_dataid", world), row_of(sim, "geom_type", world)
    for i, j in zip(ours, theirs, strict=True):
        if types[i] == mujoco.mjtGeom.mjGEOM_MESH:
            np.testing.assert_array_equal(
                mesh_of(sim.mj_model, dataid[i]), mesh_of(single, single.geom_dataid[j])
            )


def mesh_of(model: mujoco.MjModel, mesh: int) -> np.ndarray:
    """Return the vertices of a mesh, and its hull."""
    start, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
    hull = [model.mesh_polynum[mesh], model.mesh_graphadr[mesh] >= 0]
    return np.append(model.mesh_vert[start : start + count].ravel(), hull)


def assert_same_path(
    sim: Simulation, world: int, single: mujoco.MjModel, steps: int, least: float = 1 / 6
) -> None:
    """Throw the objects, and compare where they are at every step, bit for bit.

    Joints of absent objects make MuJoCo's solver sum in another order, so there it is rounding.
    """
    atol = 0.0 if single.nv == sim.mj_model.nv else 1e-12
    rng = np.random.default_rng(world)
    names = [single.joint(i).name for i in range(single.njnt)]
    q = np.concatenate([_span(sim.mj_model, n, "qpos") for n in names])
    v = np.concatenate([_span(sim.mj_model, n, "dof") for n in names])
    velocity = (0.5 * rng.normal(size=single.nv)).astype(np.float32)
    sim.reset()
    start = sim.mj_model.key("init_state").qpos.astype(np.float32)
    sim.data.qpos[:] = torch.from_numpy(start)
    sim.data.qvel[world, v] = torch.from_numpy(velocity)
    data = mujoco.MjData(single)
    data.qpos[:], data.qvel[:] = start[q], velocity
    touched = 0
    for step in range(steps):
        sim.step()
        mujoco.mj_step(single, data)
        touched += data.ncon > 0
        here = sim._engine.batch.bind("qpos")[world, q]  # type: ignore[attr-defined]
        where = f"world {world}, step {step}"
        np.testing.assert_allclose(here, data.qpos, rtol=0, atol=atol, err_msg=where)
    assert touched >= least * steps


def _span(model: mujoco.MjModel, joint: str, kind: str) -> np.ndarray:
    adr = model.jnt_qposadr if kind == "qpos" else model.jnt_dofadr
    i = model.joint(joint).id
    end = adr[i + 1] if i + 1 < model.njnt else (model.nq if kind == "qpos" else model.nv)
    return np.arange(adr[i], end)
