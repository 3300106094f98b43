"""Workloads of buckets: many small batches of different robots against one large batch."""

from __future__ import annotations

import resource
from statistics import median
from time import perf_counter

from benchmarks.measuring import Figures


def buckets(count: int, worlds: int, merge: bool, seconds: float) -> Figures:
    """Control steps of generated robots in buckets, against one robot of the mean cost.

    The ratio is that of control steps a second, in turns within one process: all worlds in buckets,
    to the same number of worlds of the robot whose physics step takes the mean time of all. With
    `merge`, robots of equal topology share a model; else each robot has its own.
    """
    import torch

    from manyworlds.envs import BucketedRlEnv, make_env
    from manyworlds.envs.buckets import bucket_cfg
    from manyworlds.scene import Scene
    from manyworlds.tasks.velocity.config.legged import robots_env_cfg
    from manyworlds.utils.devices import torch_threads

    cfg = robots_env_cfg(range(count))
    cfg.sim.engine = "native"
    cfg.sim.num_threads = 2
    cfg.seed = 0
    cfg.scene.num_envs = count * worlds
    cfg.scene.merge_buckets = merge
    before = _peak_mb()
    start = perf_counter()
    many = make_env(cfg, "cpu")
    assert isinstance(many, BucketedRlEnv)
    build = perf_counter() - start
    memory = _peak_mb() - before
    costs: dict[str, float] = {}
    for name, scene in cfg.scene.buckets.items():
        model = Scene(scene).compile()
        if cfg.sim.mujoco is not None:
            cfg.sim.mujoco.apply(model)
        costs[name] = _step_us(model)
    mean = sum(costs.values()) / count
    name = min(costs, key=lambda bucket: abs(costs[bucket] - mean))
    alone = bucket_cfg(cfg, name, count * worlds)
    alone.sim.num_threads = cfg.sim.num_threads
    before = _peak_mb()
    start = perf_counter()
    one = make_env(alone, "cpu")
    build_one = perf_counter() - start
    memory_one = _peak_mb() - before
    times: list[tuple[float, float]] = []
    with torch_threads(1):
        while sum(map(sum, times)) < seconds or len(times) < 10:
            action = 0.5 * torch.randn(count * worlds, *many.single_action_space.shape)
            pair = []
            for env in (many, one):
                start = perf_counter()
                env.step(action)
                pair.append(perf_counter() - start)
            times.append((pair[0], pair[1]))
    many.close()
    one.close()
    return {
        "num_buckets": count,
        "num_models": len({id(env) for env in many.buckets.values()}),
        "num_envs": count * worlds,
        "env_steps_per_s": count * worlds / median(a for a, _ in times[2:]),
        "one_bucket_steps_per_s": count * worlds / median(b for _, b in times[2:]),
        "build_s": build,
        "one_bucket_build_s": build_one,
        "memory_mb": memory,
        "one_bucket_memory_mb": memory_one,
        "ratio": median(b / a for a, b in times[2:]),
    }


def _step_us(model: object) -> float:
    """Return the least time of a physics step of a model after its initial state [us]."""
    import mujoco

    assert isinstance(model, mujoco.MjModel)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    times: list[float] = []
    for _ in range(5):
        start = perf_counter()
        mujoco.mj_step(model, data, 100)
        times.append(1e6 * (perf_counter() - start) / 100)
    return min(times)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
