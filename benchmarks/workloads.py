"""The workloads: each measures ratios, its two sides in turn within one process."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

Figures = dict[str, Any]

# What the simulations here read of each world.
FIELDS = ("xpos", "xquat", "cvel", "sensordata")

# Model fields that domain randomisation changes most.
RANDOMISED = (
    *("geom_friction", "body_mass", "body_inertia", "body_ipos", "dof_damping", "dof_armature"),
    *("dof_frictionloss", "actuator_gainprm", "actuator_biasprm", "actuator_forcerange"),
    *("jnt_range", "qpos0"),
)


def robots_folder() -> Path | None:
    """Where third-party robots are: $MANYWORLDS_ROBOTS, or ../shared/robots, or nowhere."""
    from manyworlds.asset_zoo import third_party

    folder = third_party.robots_folder()
    return folder if folder.is_dir() else None


def go1() -> Any:
    """Go1 on a plane with position actuators, compiled; None where its files are not."""
    robots = robots_folder()
    if robots is None:
        return None
    import mujoco

    from manyworlds.utils.spec import add_ground_plane, add_position_actuators

    spec = mujoco.MjSpec.from_file(str(robots / "unitree_go1" / "go1.xml"))
    add_ground_plane(spec)
    add_position_actuators(spec, 40.0)
    return spec.compile()


def cartpole() -> Any:
    """The cartpole of the tasks, compiled."""
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.tasks import load_env_cfg

    cfg = load_env_cfg("Cartpole-Swingup")
    cfg.scene.num_envs = 1
    return ManagerBasedRlEnv(cfg).sim.mj_model


def physics(
    nsubsteps: int, refresh: bool, seconds: float, expand: tuple[str, ...] = ()
) -> Figures | None:
    """Go1 on a plane, 1024 worlds, 2 threads: `Simulation` against `mujoco.rollout`."""
    from manyworlds.cli.bench import measure_physics

    model = go1()
    return model and measure_physics(
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
    """A step without the flight recorder against one with it, on worlds that are well."""
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
    """Go1: resident memory that another world takes; the ratio is to one MjData per world."""
    if go1() is None:
        return None
    import mujoco

    program = (
        "import sys; from pathlib import Path; from benchmarks.workloads import _simulation, go1; "
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
    """Worlds on two threads, some steps in, whose fields somebody reads."""
    from manyworlds.sim import NanGuardCfg, Simulation, SimulationCfg

    cfg = SimulationCfg(mujoco=None, num_threads=2, engine="native")
    cfg.nan_guard = NanGuardCfg(enabled=recording)
    sim = Simulation(num_envs, cfg, model, "cpu")
    for field in ("qpos", "qvel", "ctrl", "xfrc_applied", *FIELDS):
        getattr(sim.data, field)
    sim.data.qvel[:, -1] += 0.1
    sim.step(20)
    return sim


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


def in_turns(
    first: Callable[[], None], second: Callable[[], None], seconds: float
) -> tuple[list[float], list[float]]:
    """Call two functions in turn for a while; return the times of each."""
    first()
    second()
    times: tuple[list[float], list[float]] = ([], [])
    end = perf_counter() + seconds
    while perf_counter() < end:
        for function, record in zip((first, second), times, strict=True):
            start = perf_counter()
            function()
            record.append(perf_counter() - start)
    return times


def scene_workload(name: str, module: str = "scene_workloads") -> Callable[[float], Figures | None]:
    """Find a workload in a module of its own once it is needed."""

    def measure(seconds: float) -> Figures | None:
        return getattr(importlib.import_module(f"benchmarks.{module}"), name)(seconds)

    return measure


def variant_workload(name: str, *args: int) -> Callable[[float], Figures | None]:
    """Find a workload in the module of variants once it is needed."""

    def measure(seconds: float) -> Figures | None:
        from benchmarks import variant_workloads

        return getattr(variant_workloads, name)(*args, seconds)

    return measure


# Name -> what it measures, the least ratio that is good enough, and how to measure it in a
# number of seconds.
WORKLOADS: dict[str, tuple[str, float | None, Callable[[float], Figures | None]]] = {
    "physics-go1-4": (
        "Go1, 1024 worlds, 4 substeps a call / mujoco.rollout",
        0.95,
        lambda seconds: physics(4, False, seconds),
    ),
    "physics-go1-1": (
        "Go1, 1024 worlds, 1 substep a call / mujoco.rollout",
        0.90,
        lambda seconds: physics(1, False, seconds),
    ),
    "physics-go1-4-refresh": (
        "Go1, 1024 worlds, 4 substeps and refreshed kinematics / mujoco.rollout",
        0.85,
        lambda seconds: physics(4, True, seconds),
    ),
    "physics-go1-randomised": (
        "Go1, 1024 worlds, 12 model fields per world, 4 substeps a call / mujoco.rollout",
        0.90,
        lambda seconds: physics(4, False, seconds, RANDOMISED),
    ),
    "reset-go1": (
        "Go1, 4096 worlds, step / step and reset of 1 % of the worlds",
        0.97,
        resets,
    ),
    "dr-reset-go1": (
        "Go1, 4096 worlds, control step / control step and randomized reset of 10 % of the worlds",
        0.80,
        scene_workload("randomized_resets"),
    ),
    "recorder-go1": (
        "Go1, 1024 worlds, step without / with the flight recorder",
        0.97,
        lambda seconds: recorder(go1(), 1024, 1, seconds),
    ),
    "recorder-cartpole": (
        "cartpole, 1024 worlds, step without / with the flight recorder",
        0.97,
        lambda seconds: recorder(cartpole(), 1024, 1, seconds),
    ),
    "memory-go1": (
        "Go1, memory of one MjData / of one more world",
        None,
        lambda seconds: memory(),
    ),
    "actuators-go1": (
        "Go1 with 12 ideal PD joints, 1024 worlds, physics / physics and actuators",
        0.92,
        scene_workload("actuators"),
    ),
    "height-scan-go1": (
        "Go1, 1024 worlds, 17 x 11 heights: mujoco.batch's rays / the sensor",
        0.80,
        scene_workload("height_scan"),
    ),
    "page-go1": (
        "Go1, 1024 worlds in the browser, 30 pictures a second: time there is / CPU time needed",
        2.0,
        scene_workload("scene_update", "viewer_workloads"),
    ),
    "train-view-go1": (
        "Go1, 256 worlds: share of the cores' time that the page, with a client, leaves training",
        0.99,
        scene_workload("training_view", "viewer_workloads"),
    ),
    "lab-real-time": (
        "G1 in the lab at 500 Hz, 2 cores, a page and a client: simulated / real time",
        1.0,
        scene_workload("real_time", "lab_workloads"),
    ),
    "lab-direct-page": (
        "G1 in the lab in direct mode, 2 cores: steps without / with a page and a client",
        0.95,
        scene_workload("direct_steps", "lab_workloads"),
    ),
    "variants-step": (
        "1024 worlds, 4 substeps: one mesh as one variant / 64 copies of it as 64 variants",
        0.97,
        variant_workload("step"),
    ),
    **{
        f"variants-build-{count}": (
            f"{count} variants: merged model and each variant compiled in sequence / the scene",
            1.05,
            variant_workload("construction", count),
        )
        for count in (100, 1000)
    },
    "variants-memory": (
        "64 variants: a compiled model / the rows of one world",
        None,
        variant_workload("memory"),
    ),
    **{
        name: (
            f"{task}, {num_envs} worlds, env.step / mujoco.rollout",
            goal,
            partial(env, task, num_envs),
        )
        for name, task, num_envs, goal in (
            ("env-cartpole-1024", "Cartpole-Swingup", 1024, 0.65),
            ("env-cartpole-64", "Cartpole-Swingup", 64, None),
            ("env-go1-1024", "Velocity-Flat-Go1", 1024, 0.75),
            ("env-go1-64", "Velocity-Flat-Go1", 64, 0.50),
            ("env-g1", "Velocity-Flat-G1", 1024, 0.80),
        )
    },
    "train-cartpole": (
        "cartpole PPO, 1024 worlds, collecting / whole iteration",
        None,
        lambda seconds: training("Cartpole-Swingup", (64, 64), max(5, int(seconds * 2))),
    ),
    **{
        f"train-go1-{widths[0]}": (
            f"Go1 PPO, 1024 worlds, networks {widths}, collecting / whole iteration",
            None,
            # An iteration takes about five seconds.
            lambda seconds, widths=widths: training(
                "Velocity-Flat-Go1", widths, max(4, 2 + int(seconds / 5))
            ),
        )
        for widths in ((128, 128, 128), (512, 256, 128))
    },
    "start-up": (
        "bare python / import manyworlds, as whole processes",
        None,
        lambda seconds: start_up(max(3, int(seconds / 2))),
    ),
}
