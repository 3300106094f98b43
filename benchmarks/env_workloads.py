"""Workloads of environments: their steps, training in them, and starting up."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.measuring import Figures, robots_folder


def env(task: str, num_envs: int, seconds: float) -> Figures | None:
    """Whole `env.step` with resets against `mujoco.rollout` from the same states."""
    from manyworlds.cli.bench_env import make_env, measure_env
    from manyworlds.tasks import load_env_cfg

    if not task.startswith("Cartpole") and robots_folder() is None:
        return None
    cfg = load_env_cfg(task)
    cfg.sim.engine, cfg.sim.num_threads = "native", 2
    return measure_env(make_env(cfg, num_envs), seconds)


def training(task: str, widths: tuple[int, ...], iterations: int) -> Figures | None:
    """PPO in 1024 worlds: environment steps per second with the learner, and its share of time."""
    from manyworlds.rl.training import train
    from manyworlds.tasks import load_env_cfg, load_rl_cfg

    if not task.startswith("Cartpole") and robots_folder() is None:
        return None
    env_cfg, rl_cfg = load_env_cfg(task), load_rl_cfg(task)
    env_cfg.scene.num_envs = 1024
    rl_cfg.actor.hidden_dims = rl_cfg.critic.hidden_dims = widths
    rl_cfg.max_iterations = iterations
    with tempfile.TemporaryDirectory() as folder:
        records = train(task, env_cfg, rl_cfg, Path(folder)).records[2:]
    collect = median(record.collect_time for record in records)
    learn = median(record.learn_time for record in records)
    return {
        "num_envs": env_cfg.scene.num_envs,
        "training_steps_per_s": median(record.steps_per_s for record in records),
        "learner_share": learn / (collect + learn),
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
