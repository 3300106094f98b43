"""Workloads that need an NVIDIA GPU."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any, Literal

from benchmarks.env_workloads import iterations_of
from benchmarks.measuring import FIELDS, Figures, go1, in_turns


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

    if not task.startswith("Cartpole") and go1() is None:
        return None
    cfg = load_env_cfg(task)
    cfg.scene.num_envs, cfg.seed, cfg.sim.engine = num_envs, 1, "warp"
    cfg.sim.capture = capture
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
    return {
        "num_envs": num_envs,
        "control_steps_per_s": num_envs * turn / median(own),
        "physics_steps_per_s": num_envs * turn * cfg.decimation / median(raw),
        "control_step_us": 1e6 * median(own) / turn,
        "physics_us": 1e6 * median(raw) / turn,
        "ratio": sum(raw) / sum(own),
        "ratio_median": median(a / b for a, b in zip(raw, own, strict=True)),
        "well_worlds": int((env.sim.status == 0).sum()),
        "captured": int(env.step_graph is not None),
    }


def gpu_training(task: str, iterations: int = 12) -> Figures | None:
    """PPO of a task as registered: control steps per second while training, shares of time."""
    from manyworlds.tasks import load_env_cfg, load_rl_cfg

    return iterations_of(task, load_env_cfg(task), load_rl_cfg(task), iterations)


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
    "gpu-captured-cartpole": (
        "Cartpole-Balance, 4096 worlds on a GPU, graphs of mujoco_warp.step / captured env.step",
        None,
        lambda seconds: env_step(seconds, "Cartpole-Balance", 4096, capture="auto"),
    ),
    "gpu-captured-go1": (
        "Velocity-Flat-Go1, 4096 worlds on a GPU, graphs of mujoco_warp.step / captured env.step",
        0.9,
        lambda seconds: env_step(seconds, "Velocity-Flat-Go1", 4096, capture="auto"),
    ),
    "gpu-captured-g1": (
        "Velocity-Flat-G1, 8192 worlds on a GPU, graphs of mujoco_warp.step / captured env.step",
        0.95,
        lambda seconds: env_step(seconds, "Velocity-Flat-G1", 8192, capture="auto"),
    ),
    "gpu-train-go1": (
        "Velocity-Flat-Go1, PPO in 4096 worlds on a GPU, collecting / whole iteration",
        None,
        lambda seconds: gpu_training("Velocity-Flat-Go1"),
    ),
}
