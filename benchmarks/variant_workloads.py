"""Workloads of worlds that differ: stepping them, and building them."""

from __future__ import annotations

import gc
from collections.abc import Callable
from statistics import median
from time import perf_counter, process_time
from typing import Any

from benchmarks.measuring import Figures


def rock(seed: int) -> Callable[[], Any]:
    """Return a function that makes a free prop of one bumpy mesh of 162 vertices."""
    import mujoco
    import numpy as np

    mesh = mujoco.MjSpec().add_mesh(name="rock")
    mesh.make_sphere(subdivision=2)
    vertices = np.array(mesh.uservert).reshape(-1, 3)
    vertices *= 0.05 * np.random.default_rng(seed).uniform(0.8, 1.2, (len(vertices), 1))
    faces = np.array(mesh.userface).tolist()

    def make() -> mujoco.MjSpec:
        spec = mujoco.MjSpec()
        spec.add_mesh(name="rock", uservert=vertices.ravel().tolist(), userface=faces)
        body = spec.worldbody.add_body(name="rock")
        body.add_freejoint()
        body.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="rock")
        return spec

    return make


def build(
    variants: list[Callable[[], Any]], num_envs: int, num_threads: int = 1
) -> tuple[Any, Any]:
    """Drop rocks on a floor, one in each world."""
    import mujoco

    from manyworlds.entity import VariantEntityCfg
    from manyworlds.scene import Scene, SceneCfg
    from manyworlds.sim import Simulation, SimulationCfg

    def floor(spec: mujoco.MjSpec) -> None:
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 0.1])

    cfg = VariantEntityCfg(
        variants={f"rock_{i}": make for i, make in enumerate(variants)},
        init_state=VariantEntityCfg.InitialStateCfg(pos=(0.0, 0.0, 0.08)),
    )
    scene = Scene(SceneCfg(num_envs=num_envs, env_spacing=0, entities={"o": cfg}, spec_fn=floor))
    info = scene.collect_variant_info()
    sim_cfg = SimulationCfg(engine="native", num_threads=num_threads)
    sim = Simulation(num_envs, sim_cfg, spec=scene.spec, device="cpu", variant_info=info)
    scene.initialize(sim.mj_model, sim.model, sim.data)
    return scene, sim


def step(seconds: float) -> Figures:
    """Four substeps of worlds with one mesh as one variant, against 64 copies as 64 variants."""
    import torch

    num_envs = 1024
    sims = [build([rock(0)] * count, num_envs, 2)[1] for count in (1, 64)]
    for sim in sims:
        sim.data.qpos[:] = torch.from_numpy(sim.mj_model.key("init_state").qpos).float()
        sim.step(200)
    times: list[tuple[float, ...]] = []
    end = perf_counter() + seconds
    while perf_counter() < end or len(times) < 5:
        row = []
        for sim in sims:
            start = perf_counter()
            sim.step(4)
            row.append(perf_counter() - start)
        times.append(tuple(row))
    one, many = (median(column) * 1e6 for column in zip(*times, strict=True))
    return {
        "num_envs": num_envs,
        "one_us": one,
        "many_us": many,
        "ratio": median(a / b for a, b in times),
    }


def construction(count: int, seconds: float) -> Figures:
    """The merged model and each variant compiled in sequence, against a scene of all of them."""
    from manyworlds.sim import Simulation, SimulationCfg

    variants = [rock(seed) for seed in range(count)]
    merged = build(variants, 1)[0].spec

    def sequence() -> None:
        cfg = SimulationCfg(engine="native", num_threads=1)
        Simulation(count, cfg, spec=merged, device="cpu")
        for make in variants:
            make().compile()

    times: list[tuple[float, ...]] = []
    end = perf_counter() + seconds
    while perf_counter() < end or len(times) < 3:
        row: list[float] = []
        for function in (sequence, lambda: build(variants, count)):
            gc.collect()
            start, cpu = perf_counter(), process_time()
            function()
            row += [perf_counter() - start, process_time() - cpu]
        times.append(tuple(row))
    one, _, scene, _ = (median(column) for column in zip(*times, strict=True))
    return {
        "num_variants": count,
        "sequence_ms": one * 1e3,
        "scene_ms": scene * 1e3,
        "per_variant_ms": scene / count * 1e3,
        "cpu_ratio": median(row[1] / row[3] for row in times),
        "ratio": median(row[0] / row[2] for row in times),
    }


def memory(_: float) -> Figures:
    """Bytes of model rows that a world with variants takes, against a compiled model of its own."""
    import mujoco

    _, sim = build([rock(seed) for seed in range(64)], 64)
    rows = sum(array[0].nbytes for array in sim._engine.model_rows().values())
    own = mujoco.mj_sizeModel(sim.mj_model)
    return {"num_envs": 64, "row_bytes": rows, "model_bytes": own, "ratio": own / rows}
