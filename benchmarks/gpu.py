"""Workloads that need an NVIDIA GPU."""

from __future__ import annotations

import functools
from collections.abc import Callable
from statistics import median
from typing import Any, Literal

from benchmarks.env_workloads import iterations_of
from benchmarks.measuring import FIELDS, Figures, go1, in_turns, robots_folder


def graph_step(seconds: float, device: str = "cuda", num_envs: int = 4096) -> Figures | None:
    """Go1: `sim.step` against a captured graph of `mujoco_warp.step` on the same worlds."""
    import mujoco_warp as mjw
    import warp as wp

    sim = _simulation(device, num_envs)
    if sim is None:
        return None
    with wp.ScopedDevice(device):
        with wp.ScopedCapture() as capture:
            mjw.step(sim.wp_model, sim.wp_data)
        graph: Any = capture.graph

        def through_simulation() -> None:
            for _ in range(50):
                sim.step()
            wp.synchronize()

        def directly() -> None:
            for _ in range(50):
                wp.capture_launch(graph)
            wp.synchronize()

        own, raw = in_turns(through_simulation, directly, seconds)
    return {
        "num_envs": num_envs,
        "step_us": 1e6 * median(own) / 50,
        "graph_us": 1e6 * median(raw) / 50,
        "steps_per_s": num_envs * 50 / median(own),
        "ratio": sum(raw) / sum(own),
        "ratio_median": median(a / b for a, b in zip(raw, own, strict=True)),
        "well_worlds": int((sim.status == 0).sum()),
    }


def recorder(seconds: float, device: str = "cuda", num_envs: int = 4096) -> Figures | None:
    """Go1: a step without the flight recorder against one with it."""
    import warp as wp

    sims = [_simulation(device, num_envs, recording) for recording in (False, True)]
    if sims[0] is None:
        return None

    def steps(sim: Any) -> Callable[[], None]:
        def call() -> None:
            for _ in range(50):
                sim.step()
            wp.synchronize()

        return call

    off, on = in_turns(steps(sims[0]), steps(sims[1]), seconds)
    return {
        "num_envs": num_envs,
        "off_us": 1e6 * median(off) / 50,
        "on_us": 1e6 * median(on) / 50,
        "ratio": sum(off) / sum(on),
        "ratio_median": median(a / b for a, b in zip(off, on, strict=True)),
    }


def env_step(
    seconds: float,
    task: str,
    num_envs: int,
    device: str = "cuda",
    turn: int = 20,
    capture: Literal["off", "auto"] = "off",
) -> Figures | None:
    """A control step of a task against graphs of `mujoco_warp.step` alone on the same worlds."""
    import mujoco_warp as mjw
    import torch
    import warp as wp

    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.tasks import load_env_cfg

    if not task.startswith("Cartpole") and robots_folder() is None:
        return None
    cfg = load_env_cfg(task)
    cfg.scene.num_envs, cfg.seed, cfg.sim.engine = num_envs, 1, "warp"
    cfg.sim.capture = capture
    if capture != "off":
        cfg.sim.nan_guard.enabled = False  # it looks at each step
    env = ManagerBasedRlEnv(cfg, device=device)
    generator = torch.Generator(device).manual_seed(1)
    shape = (num_envs, env.action_manager.total_action_dim)
    actions = [torch.rand(shape, generator=generator, device=device) - 0.5 for _ in range(turn)]
    env.reset()
    for action in actions:
        env.step(action)
    with wp.ScopedDevice(device):
        with wp.ScopedCapture() as physics_graph:
            mjw.step(env.sim.wp_model, env.sim.wp_data)
        graph: Any = physics_graph.graph

        def control_steps() -> None:
            for action in actions:
                env.step(action)
            wp.synchronize()

        def physics() -> None:
            for _ in range(turn * cfg.decimation):
                wp.capture_launch(graph)
            wp.synchronize()

        own, raw = in_turns(control_steps, physics, seconds)
        work = _device_work(control_steps, turn) if torch.device(device).type == "cuda" else {}
    step_graph = env.step_graph
    return {
        "num_envs": num_envs,
        "control_steps_per_s": num_envs * turn / median(own),
        "physics_steps_per_s": num_envs * turn * cfg.decimation / median(raw),
        "control_step_us": 1e6 * median(own) / turn,
        "physics_us": 1e6 * median(raw) / turn,
        "ratio": sum(raw) / sum(own),
        "ratio_median": median(a / b for a, b in zip(raw, own, strict=True)),
        "well_worlds": int((env.sim.status == 0).sum()),
        "captured": int(step_graph is not None),
        "segments": 0 if step_graph is None else step_graph.segments,
        **work,
    }


def _device_work(control_steps: Callable[[], None], count: int) -> Figures:
    """Kernels of a control step, and the share of time in which the GPU runs any."""
    import torch
    from torch.profiler import DeviceType, ProfilerActivity, profile

    # CUDA events give the whole time, and the profiler that of kernels, also within graphs.
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        begin.record()
        control_steps()
        end.record()
        torch.cuda.synchronize()
    events = [e for e in profiler.events() or [] if e.device_type == DeviceType.CUDA]
    busy_us = sum(event.time_range.elapsed_us() for event in events)
    return {
        "kernels_per_step": len(events) / count,
        "busy_share": busy_us / (1e3 * begin.elapsed_time(end)),
    }


def gpu_training(
    task: str,
    iterations: int = 12,
    num_envs: int | None = None,
    capture: Literal["off", "auto"] = "off",
) -> Figures | None:
    """PPO of a task as registered: control steps per second while training, shares of time."""
    from manyworlds.tasks import load_env_cfg, load_rl_cfg

    env_cfg, rl_cfg = load_env_cfg(task), load_rl_cfg(task)
    if num_envs is not None:
        env_cfg.scene.num_envs = num_envs
    if capture != "off":
        env_cfg.sim.capture = capture
        env_cfg.sim.nan_guard.enabled = False
        rl_cfg.algorithm.capture_update = True
    return iterations_of(task, env_cfg, rl_cfg, iterations)


def _captured_training(seconds: float, task: str, num_envs: int) -> Figures | None:
    return gpu_training(task, num_envs=num_envs, capture="auto")


def lever(
    seconds: float,
    task: str,
    change: Callable[[Any], None],
    num_envs: int = 4096,
    device: str = "cuda",
    turn: int = 50,
) -> Figures | None:
    """Graphs of `mujoco_warp.step` of a task's worlds, without and with a change of its physics.

    Args:
        seconds: measured time [s].
        task: the task.
        change: function that changes the task's configuration.
        num_envs: number of worlds.
        device: the GPU.
        turn: number of physics steps between two measurements.
    """
    import mujoco_warp as mjw
    import torch
    import warp as wp

    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.tasks import load_env_cfg

    if not task.startswith("Cartpole") and robots_folder() is None:
        return None
    calls: list[Callable[[], None]] = []
    envs: list[ManagerBasedRlEnv] = []
    for changes in (False, True):
        cfg = load_env_cfg(task)
        cfg.scene.num_envs, cfg.seed, cfg.sim.engine = num_envs, 1, "warp"
        if changes:
            change(cfg)
        env = ManagerBasedRlEnv(cfg, device=device)
        env.reset()
        for _ in range(20):
            env.step(torch.zeros(num_envs, env.action_manager.total_action_dim, device=device))
        with wp.ScopedDevice(device), wp.ScopedCapture() as physics_graph:
            mjw.step(env.sim.wp_model, env.sim.wp_data)
        graph: Any = physics_graph.graph

        def steps(graph: Any = graph) -> None:
            for _ in range(turn):
                wp.capture_launch(graph)
            wp.synchronize()

        calls.append(steps)
        envs.append(env)
    without, with_it = in_turns(calls[0], calls[1], seconds)
    return {
        "num_envs": num_envs,
        "without_us": 1e6 * median(without) / turn,
        "with_us": 1e6 * median(with_it) / turn,
        "ratio": sum(without) / sum(with_it),
        "ratio_median": median(a / b for a, b in zip(without, with_it, strict=True)),
        "well_worlds": int((envs[1].sim.status == 0).sum()),
    }


def _named_sensors_only(cfg: Any) -> None:
    from manyworlds.tasks.cpu_physics import keep_named_sensors

    keep_named_sensors(cfg)


def _half_the_iterations(cfg: Any) -> None:
    cfg.sim.mujoco.iterations = max(1, cfg.sim.mujoco.iterations // 2)


def _half_the_line_search(cfg: Any) -> None:
    cfg.sim.mujoco.ls_iterations = max(1, cfg.sim.mujoco.ls_iterations // 2)


def _few_contacts(cfg: Any) -> None:
    cfg.sim.nconmax = 24


def _few_constraints(cfg: Any) -> None:
    cfg.sim.njmax = 100


# Changes of a task's physics: what is compared, and the change. Sizes that are None, as in all
# tasks, are those of `estimate_capacity`.
GPU_LEVERS: dict[str, tuple[str, Callable[[Any], None]]] = {
    "sensors": ("all sensors / those that terms name", _named_sensors_only),
    "iterations": ("the task's iterations of the solver / half of them", _half_the_iterations),
    "line-search": ("the task's iterations of the line search / half", _half_the_line_search),
    "nconmax": ("estimated room for contacts / 24 in each world", _few_contacts),
    "njmax": ("estimated room for constraints / 100 in each world", _few_constraints),
}


def _simulation(device: str, num_envs: int, recording: bool = False) -> Any:
    """Worlds that fall and tremble, with room for their contacts, some steps in."""
    from manyworlds.sim import NanGuardCfg, Simulation, SimulationCfg

    model = go1()
    if model is None:
        return None
    cfg = SimulationCfg(mujoco=None, engine="warp", nconmax=64, njmax=300)
    cfg.nan_guard = NanGuardCfg(enabled=recording)
    sim = Simulation(num_envs, cfg, model, device)
    for field in FIELDS:
        getattr(sim.data, field)
    sim.data.ctrl.uniform_(-0.2, 0.2)
    sim.step(20)
    return sim


# As `WORKLOADS` of `benchmarks.workloads`.
GPU_WORKLOADS: dict[str, tuple[str, float | None, Callable[[float], Figures | None]]] = {
    "gpu-step-go1": (
        "Go1, 4096 worlds on a GPU, captured graph of mujoco_warp.step / sim.step",
        0.98,
        graph_step,
    ),
    "gpu-recorder-go1": (
        "Go1, 4096 worlds on a GPU, step without / with the flight recorder",
        0.97,
        recorder,
    ),
    "gpu-env-cartpole": (
        "Cartpole-Balance, 4096 worlds on a GPU, graphs of mujoco_warp.step / env.step",
        None,
        lambda seconds: env_step(seconds, "Cartpole-Balance", 4096),
    ),
    "gpu-env-go1": (
        "Velocity-Flat-Go1, 4096 worlds on a GPU, graphs of mujoco_warp.step / env.step",
        0.9,
        lambda seconds: env_step(seconds, "Velocity-Flat-Go1", 4096),
    ),
    "gpu-env-g1": (
        "Velocity-Flat-G1, 8192 worlds on a GPU, graphs of mujoco_warp.step / env.step",
        0.95,
        lambda seconds: env_step(seconds, "Velocity-Flat-G1", 8192),
    ),
    "gpu-train-go1": (
        "Velocity-Flat-Go1, PPO in 4096 worlds on a GPU, collecting / whole iteration",
        None,
        lambda seconds: gpu_training("Velocity-Flat-Go1"),
    ),
}

CAPTURED_TASKS = {
    "cartpole": "Cartpole-Balance",
    "go1": "Velocity-Flat-Go1",
    "go1-rough": "Velocity-Rough-Go1",
    "g1": "Velocity-Flat-G1",
    "tracking": "Tracking-Flat-G1",
    "lifting": "Lift-Cube-Yam",
}
CAPTURED_WORLDS = (1024, 4096, 8192)
_GOALS = {("go1", 4096): 0.9, ("g1", 8192): 0.95}

for _name, _task in CAPTURED_TASKS.items():
    for _worlds in CAPTURED_WORLDS:
        GPU_WORKLOADS[f"gpu-captured-{_name}-{_worlds}"] = (
            f"{_task}, {_worlds} worlds on a GPU, graphs of mujoco_warp.step / captured env.step",
            _GOALS.get((_name, _worlds)),
            functools.partial(env_step, task=_task, num_envs=_worlds, capture="auto"),
        )
        GPU_WORKLOADS[f"gpu-captured-train-{_name}-{_worlds}"] = (
            f"{_task}, PPO in {_worlds} worlds on a GPU with captured steps and updates, "
            "collecting / whole iteration",
            None,
            functools.partial(_captured_training, task=_task, num_envs=_worlds),
        )
for _name, (_what, _change) in GPU_LEVERS.items():
    GPU_WORKLOADS[f"gpu-lever-{_name}"] = (
        f"Velocity-Flat-Go1, physics of 4096 worlds on a GPU, {_what}",
        None,
        functools.partial(lever, task="Velocity-Flat-Go1", change=_change),
    )
