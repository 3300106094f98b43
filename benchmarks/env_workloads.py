"""Workloads of environments: their steps, training in them, and starting up."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from benchmarks.measuring import Figures, robots_folder


def env(task: str, num_envs: int, seconds: float) -> Figures | None:
    """Whole `env.step` with resets against `mujoco.rollout` from the same states."""
    from manyworlds.cli.bench_env import make_env, measure_env
    from manyworlds.tasks import load_env_cfg

    if not task.startswith("Cartpole") and robots_folder() is None:
        return None
    cfg = load_env_cfg(task)
    cfg.sim.engine, cfg.sim.num_threads = "native", 2
    return {**measure_env(make_env(cfg, num_envs), seconds)}


def rays(task: str, num_envs: int, seconds: float) -> Figures | None:
    """Time of `env.step` on rough ground, and the part of it in which rays are cast."""
    import torch

    from manyworlds.cli.bench_env import make_env
    from manyworlds.sensor import RayCastSensor
    from manyworlds.tasks import load_env_cfg
    from manyworlds.utils.devices import torch_threads

    if robots_folder() is None:
        return None
    cfg = load_env_cfg(task)
    cfg.sim.engine, cfg.sim.num_threads = "native", 2
    env = make_env(cfg, num_envs)
    cast, spent = env.sim.ray, [0.0]
    sensors = [s for s in env.scene.sensors.values() if isinstance(s, RayCastSensor)]

    def timed(*args: Any, **options: Any) -> Any:
        start = perf_counter()
        hits = cast(*args, **options)
        spent[0] += perf_counter() - start
        return hits

    env.sim.ray = timed  # type: ignore[method-assign]
    times: list[tuple[float, float]] = []
    with torch_threads(1):
        while sum(step for step, _ in times) < seconds or len(times) < 10:
            action = 2.0 * torch.rand(num_envs, env.action_manager.total_action_dim) - 1.0
            spent[0], start = 0.0, perf_counter()
            env.step(action)
            times.append((perf_counter() - start, spent[0]))
    whole, within = (sum(part) for part in zip(*times[2:], strict=True))  # the first steps warm up
    return {
        "num_envs": num_envs,
        "num_rays": sum(sensor.num_rays for sensor in sensors),
        "env_steps_per_s": num_envs * len(times[2:]) / whole,
        "step_us": 1e6 * whole / len(times[2:]),
        "rays_us": 1e6 * within / len(times[2:]),
        "ratio": 1.0 - within / whole,
    }


def training(task: str, widths: tuple[int, ...], iterations: int) -> Figures | None:
    """PPO in 1024 worlds: control steps per second with the learner, and shares of time."""
    from manyworlds.tasks import load_env_cfg, load_rl_cfg

    env_cfg, rl_cfg = load_env_cfg(task), load_rl_cfg(task)
    env_cfg.scene.num_envs = 1024
    rl_cfg.actor.hidden_dims = rl_cfg.critic.hidden_dims = widths
    return iterations_of(task, env_cfg, rl_cfg, iterations)


def cpu_training(task: str, iterations: int) -> Figures | None:
    """The same with the settings that `manyworlds train` uses on a few CPU cores.

    Tasks without such settings, whose images take nearly all of the time, are measured in 64
    worlds, since an iteration in 4096 takes minutes.
    """
    from manyworlds.tasks import load_env_cfg, load_rl_cfg, use_cpu_preset

    env_cfg, rl_cfg = load_env_cfg(task), load_rl_cfg(task)
    if not use_cpu_preset(task, env_cfg, rl_cfg):
        env_cfg.scene.num_envs = 64
    return iterations_of(task, env_cfg, rl_cfg, iterations)


def iterations_of(task: str, env_cfg: Any, rl_cfg: Any, iterations: int) -> Figures | None:
    """Train, and return medians over the iterations after the first two."""
    from manyworlds.rl.training import train

    if not task.startswith("Cartpole") and robots_folder() is None:
        return None
    rl_cfg.max_iterations = iterations
    start = perf_counter(), process_time()
    with tempfile.TemporaryDirectory() as folder:
        records = train(task, env_cfg, rl_cfg, Path(folder)).records[2:]
    busy = (process_time() - start[1]) / (perf_counter() - start[0])
    collect = median(record.collect_time for record in records)
    learn = median(record.learn_time for record in records)
    return {
        "num_envs": env_cfg.scene.num_envs,
        "training_steps_per_s": median(record.steps_per_s for record in records),
        **{
            f"{part}_share": median(record.shares[part] for record in records)
            for part in ("physics", "managers", "learner")
        },
        "busy_cores": busy,
        "ratio": collect / (collect + learn),
    }


def start_up(repeats: int) -> Figures:
    """Fresh processes: `import manyworlds`, `--help`, and the first step of cartpole."""
    first_step = (
        "import torch; from manyworlds.envs import ManagerBasedRlEnv; "
        "from manyworlds.tasks import load_env_cfg; "
        "env = ManagerBasedRlEnv(load_env_cfg('Cartpole-Swingup')); "
        "env.step(torch.zeros(env.num_envs, 1))"
    )
    programs = {
        "import_s": ["-c", "import manyworlds"],
        "help_s": ["-m", "manyworlds.cli.main", "--help"],
        "list_s": ["-m", "manyworlds.cli.main", "list"],
        "first_step_s": ["-c", first_step],
        "python_s": ["-c", "pass"],
    }
    figures: Figures = {name: median(_run_times(args, repeats)) for name, args in programs.items()}
    figures["ratio"] = figures["python_s"] / figures["import_s"]
    return figures


def _run_times(args: list[str], repeats: int) -> list[float]:
    times = []
    for _ in range(repeats):
        start = perf_counter()
        subprocess.run([sys.executable, *args], check=True, capture_output=True)
        times.append(perf_counter() - start)
    return times
