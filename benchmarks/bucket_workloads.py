"""Workloads of buckets: many small batches of different robots against one large batch."""

from __future__ import annotations

import copy
import resource
from dataclasses import replace
from statistics import median
from time import perf_counter

from benchmarks.measuring import Figures


def buckets(count: int, worlds: int, seconds: float) -> Figures:
    """Control steps of generated robots in buckets, against one robot of the mean cost.

    The ratio is that of control steps a second, in turns within one process: all worlds in buckets,
    to the same number of worlds of the robot whose physics step takes the mean time of all.
    """
    import torch

    from manyworlds.envs import BucketedRlEnv, make_env
    from manyworlds.tasks.velocity.config.legged import robots_env_cfg
    from manyworlds.utils.devices import torch_threads

    cfg = robots_env_cfg(range(count))
    cfg.sim.engine = "native"
    cfg.sim.num_threads = 2
    cfg.seed = 0
    cfg.scene.num_envs = count * worlds
    before = _peak_mb()
    start = perf_counter()
    many = make_env(cfg, "cpu")
    assert isinstance(many, BucketedRlEnv)
    build = perf_counter() - start
    memory = _peak_mb() - before
    costs = {name: _step_us(env.sim.mj_model) for name, env in many.buckets.items()}
    mean = sum(costs.values()) / count
    name = min(costs, key=lambda bucket: abs(costs[bucket] - mean))
    alone = copy.deepcopy(many.buckets[name].cfg)
    alone.scene = replace(
        alone.scene, num_envs=count * worlds, world_ids=None, first_world=0, total_envs=None
    )
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
    """Return the time of a physics step of a model in its initial state [us]."""
    import mujoco

    assert isinstance(model, mujoco.MjModel)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_step(model, data, 50)
    start = perf_counter()
    mujoco.mj_step(model, data, 200)
    return 1e6 * (perf_counter() - start) / 200


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
