"""Workloads of the simulation: stepping, resets, the flight recorder, memory."""

from __future__ import annotations

import subprocess
import sys
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.measuring import FIELDS, Figures, go1, in_turns

# Model fields that domain randomization changes most.
RANDOMISED = (
    *("geom_friction", "body_mass", "body_inertia", "body_ipos", "dof_damping", "dof_armature"),
    *("dof_frictionloss", "actuator_gainprm", "actuator_biasprm", "actuator_forcerange"),
    *("jnt_range", "qpos0"),
)


def physics(
    nsubsteps: int, refresh: bool, seconds: float, expand: tuple[str, ...] = ()
) -> Figures | None:
    """Go1 on a plane, 1024 worlds, 2 threads: `Simulation` against `mujoco.rollout`."""
    from manyworlds.cli.bench import measure_physics

    model = go1()
    if model is None:
        return None
    speed = measure_physics(
        model,
        num_envs=1024,
        num_threads=2,
        nsubsteps=nsubsteps,
        seconds=seconds,
        refresh=refresh,
        engine="native",
        fields=FIELDS,
        expand=expand,
    )
    return {**speed}


def resets(seconds: float) -> Figures | None:
    """Go1, 4096 worlds: a step against a step after 1 % of the worlds were reset."""
    import torch

    model, num_envs = go1(), 4096
    if model is None:
        return None
    sim = _simulation(model, num_envs)
    few = [torch.randperm(num_envs)[: num_envs // 100] for _ in range(16)]
    times: list[tuple[float, float]] = []
    end = perf_counter() + seconds
    while perf_counter() < end or len(times) < 3:
        start = perf_counter()
        sim.reset(few[len(times) % len(few)])
        between = perf_counter()
        sim.step()
        times.append((between - start, perf_counter() - between))
    reset, step = (median(part) for part in zip(*times, strict=True))
    return {
        "num_envs": num_envs,
        "reset_us": 1e6 * reset,
        "step_us": 1e6 * step,
        "reset_share": reset / step,
        "ratio": step / (step + reset),
    }


def recorder(model: Any, num_envs: int, nsubsteps: int, seconds: float) -> Figures | None:
    """Step without the flight recorder against a step with it, on worlds without errors."""
    if model is None:
        return None
    calls = max(1, 8192 // num_envs)
    sides = []
    for enabled in (False, True):
        sim = _simulation(model, num_envs, enabled)
        sides.append(lambda sim=sim: [sim.step(nsubsteps) for _ in range(calls)])
    sides[1]()  # fill the ring
    off, on = in_turns(sides[0], sides[1], seconds)
    return {
        "num_envs": num_envs,
        "off_us": 1e6 * median(off) / calls,
        "on_us": 1e6 * median(on) / calls,
        "ratio": sum(off) / sum(on),
        "ratio_median": median(a / b for a, b in zip(off, on, strict=True)),
    }


def memory() -> Figures | None:
    """Resident memory of one more world of Go1; the ratio is to one MjData per world."""
    if go1() is None:
        return None
    import mujoco

    program = (
        "import sys; from pathlib import Path; "
        "from benchmarks.sim_workloads import _simulation, go1; "
        "sim = _simulation(go1(), int(sys.argv[1])); [sim.step() for _ in range(3)]; "
        "print(int(Path('/proc/self/statm').read_text().split()[1]) * 4096)"
    )
    few, many = 1024, 5120
    resident = []
    for count in (few, many):
        args = [sys.executable, "-c", program, str(count)]
        done = subprocess.run(args, check=True, capture_output=True, text=True)
        resident.append(int(done.stdout))
    each = (resident[1] - resident[0]) / (many - few)
    return {
        "num_envs": many,
        "world_bytes": each,
        "mjdata_bytes": mujoco.MjData(go1()).nbuffer,
        "ratio": mujoco.MjData(go1()).nbuffer / each,
    }


def _simulation(model: Any, num_envs: int, recording: bool = False) -> Any:
    """Return worlds on two threads, after some steps, with fields that were read."""
    from manyworlds.sim import NanGuardCfg, Simulation, SimulationCfg

    cfg = SimulationCfg(mujoco=None, num_threads=2, engine="native")
    cfg.nan_guard = NanGuardCfg(enabled=recording)
    sim = Simulation(num_envs, cfg, model, "cpu")
    for field in ("qpos", "qvel", "ctrl", "xfrc_applied", *FIELDS):
        getattr(sim.data, field)
    sim.data.qvel[:, -1] += 0.1
    sim.step(20)
    return sim
