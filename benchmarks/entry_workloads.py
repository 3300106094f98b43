"""Workloads of entering a training: time until a lab is open, its cost, memory of worlds."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter, sleep

from benchmarks.measuring import Figures
from benchmarks.viewer_workloads import cpu_seconds

_TASK = "Velocity-Flat-Quadruped"
_LEAST_ENTRIES = 5
_PAUSE_S = 1.0


def entry(seconds: float) -> Figures:
    """Enter worlds of a training of quadrupeds that runs on all cores.

    Time from the request until the page of the lab is there, in a process that waits and in a new
    one; and the shares of the cores that the lab's process takes with and without a world. The
    ratio is the share of the cores that it leaves while a world is entered and its page is open.
    """
    from manyworlds.lab.training import WarmLab

    with _training() as folder:
        lab = WarmLab(folder)
        try:
            lab.warm()
            waiting = _share(lab.process.pid, seconds)
            times = []
            for world in range(_LEAST_ENTRIES):
                start = perf_counter()
                lab.enter(world)
                times.append(perf_counter() - start)
                sleep(_PAUSE_S)  # the next environment is being built
            entered = _share(lab.process.pid, seconds)
        finally:
            lab.close()
        start = perf_counter()
        arguments = ["lab", "--attach", str(folder), "--headless", "--seconds", "0"]
        subprocess.run([sys.executable, "-m", "manyworlds", *arguments], check=True)
        fresh = perf_counter() - start
    return {
        "enter_s": median(times),
        "slowest_enter_s": max(times),
        "fresh_process_s": fresh,
        "waiting_share": waiting,
        "entered_share": entered,
        "ratio": 1.0 - entered,
    }


def memory(seconds: float) -> Figures:
    """Remember the last 10 s of 1024 quadrupeds: control steps without / with the memory."""
    import torch

    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.live.memory import WorldMemory
    from manyworlds.tasks import load_env_cfg

    cfg = load_env_cfg(_TASK)
    cfg.scene.num_envs, cfg.seed = 1024, 1
    env = ManagerBasedRlEnv(cfg, device="cpu")
    kept = WorldMemory(env)
    action = torch.zeros(env.num_envs, env.action_manager.total_action_dim)
    steps = round(10.0 / env.step_dt)
    for step in range(steps):
        env.step(action)
        if step % 24 == 23:
            kept.end_rollout()
    filled, remembered = kept.size, kept.seconds
    times: dict[bool, list[float]] = {False: [], True: []}
    end = perf_counter() + seconds
    while perf_counter() < end or len(times[True]) < 2:
        for with_memory in (False, True):
            kept.forget()
            env.observers = [kept] if with_memory else []
            start = perf_counter()
            for _ in range(20):
                env.step(action)
            times[with_memory].append(perf_counter() - start)
    env.close()
    return {
        "num_envs": env.num_envs,
        "memory_bytes": filled,
        "remembered_s": remembered,
        "ratio": median(a / b for a, b in zip(times[False], times[True], strict=True)),
    }


@contextlib.contextmanager
def _training() -> Iterator[Path]:
    """Run a training, and yield its folder once it has an attach server and learns."""
    with tempfile.TemporaryDirectory() as root:
        arguments = ["train", _TASK, "--enter", "--log-root", root]
        process = subprocess.Popen(
            [sys.executable, "-m", "manyworlds", *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # as in another terminal, which counts for Linux's scheduler
        )
        try:
            while not (found := [*Path(root).glob("*/*/progress.jsonl")]):
                if process.poll() is not None:
                    raise RuntimeError(f"the training has ended with {process.returncode}")
                sleep(0.1)
            yield found[0].parent
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()


def _share(pid: int, seconds: float) -> float:
    """Return the share of the time of all cores that a process and its children take."""
    start, busy = perf_counter(), _family_seconds(pid)
    sleep(seconds)
    spent = perf_counter() - start
    return (_family_seconds(pid) - busy) / (spent * (os.cpu_count() or 1))


def _family_seconds(pid: int) -> float:
    children = [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return cpu_seconds(pid) + sum(map(_family_seconds, children))
