"""`manyworlds bench`: measure the speed of a task, or of the physics of a model file."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Annotated, Any, TypedDict

import mujoco
import numpy as np
import tyro

from manyworlds.cli.options import Load, parse
from manyworlds.utils.terminal import new_console, new_progress

DEFAULT_FIELDS = ("qpos", "qvel", "xpos", "xquat", "cvel", "sensordata")
"""Fields of `sim.data` that are read after every call, as a control step would."""

ENGINES = ("auto", "native", "warp")

_ROUND_SECONDS = 0.2
_ROUND_STEPS = 16
"""Smallest number of physics steps in a round; the rollout is slower with few steps per call."""
_ROUND_BYTES = 64 * 2**20
_SETTLE_SECONDS = 0.5
_SAMPLE = 64
"""Number of worlds that settle at first, and of worlds whose contacts are counted in a round."""
_FOR_FILES = ("nsubsteps", "refresh", "plane", "position_kp")
"""Options that do not apply to tasks."""
_HUGE = 1e10
"""Positions and velocities above this have diverged (mjMAXVAL)."""


@dataclass(kw_only=True)
class BenchOptions:
    """Measure the speed of a model or a task in many worlds, relative to `mujoco.rollout`.

    The simulation and the rollout run alternately, with the same states, controls and threads.
    The ratio is the total time of the rollout divided by the total time of the simulation.
    """

    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="TARGET")]
    """Model file (MJCF or URDF), or the name of a task."""
    num_envs: int = 1024
    """Number of worlds."""
    seconds: float = 5.0
    """Measured time of both programs together [s]."""
    engine: str = "auto"
    """Engine: native (MuJoCo C), warp (MuJoCo Warp), or auto, which uses native for a task."""
    threads: int = 0
    """Number of threads; 0 uses every core."""
    nsubsteps: int = 4
    """For a model file: number of physics steps per call."""
    refresh: bool = False
    """For a model file: also compute the kinematics at the new state at the end of every call."""
    plane: bool = False
    """For a model file: add a ground plane, and lift floating bodies onto it."""
    position_kp: float | None = None
    """For a model file: stiffness of position actuators to add to joints without an actuator."""
    profile: bool = False
    """Print the time that each manager and term of a task takes in a control step."""
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False
    """Print one JSON object."""
    load: Load = ()


class PhysicsSpeed(TypedDict):
    """Speed of a simulation and of `mujoco.rollout`, and how they were measured."""

    engine: str
    num_envs: int
    num_threads: int
    nsubsteps: int
    refresh: bool
    steps_per_s: float
    """Physics steps of all worlds per second of wall time [1/s]."""
    rollout_steps_per_s: float
    """Those of the rollout [1/s]."""
    ratio: float
    """The simulation's speed relative to the rollout's."""
    ratio_median: float
    """Median of the ratio over rounds."""
    cpu_ratio: float | None
    """The ratio per second of process CPU time."""
    contacts_mean: float | None
    """Contacts per world."""
    contacts_p95: float | None
    """95th percentile of the contacts of a world."""
    diverged_worlds: int
    """Worlds whose state is not finite, or huge."""
    same_trajectory: bool | None
    """Whether all states equal the rollout's bit for bit; None for an engine that does not promise
    that."""
    steps: int
    rounds: int
    timestep: float
    """Physics timestep [s]."""


def main(argv: list[str]) -> int:
    """Run `manyworlds bench`."""
    from manyworlds.spec.edits import add_ground_plane, add_position_actuators
    from manyworlds.spec.load import compile_spec, load_spec
    from manyworlds.tasks import list_tasks
    from manyworlds.validation.names import near_matches

    args = parse(BenchOptions, argv, "bench")
    _check(args.num_envs, args.threads, args.nsubsteps, args.seconds, args.engine)
    if not args.file.is_file() and str(args.file) in list_tasks():
        return _bench_task(args)
    if args.profile:
        raise ValueError(f"--profile measures the steps of a task, and '{args.file}' is none.")
    near = near_matches(str(args.file), list_tasks())
    if near and not args.file.exists():
        raise FileNotFoundError(f"There is no model file or task '{args.file}'.{near}")
    spec, _ = load_spec(args.file)
    if args.plane:
        add_ground_plane(spec)
    if args.position_kp is not None:
        add_position_actuators(spec, args.position_kp)
    model = compile_spec(spec, args.file)
    with _progress_bar(shown=not args.as_json and sys.stderr.isatty()) as progress:
        result = measure_physics(
            model,
            args.num_envs,
            args.threads,
            args.nsubsteps,
            args.seconds,
            refresh=args.refresh,
            engine=args.engine,
            progress=progress,
        )
    if args.as_json:
        print(json.dumps({"file": str(args.file)} | result))
    else:
        print(_report(result))
    return 0


def _bench_task(args: BenchOptions) -> int:
    """Measure a task, and print the result."""
    from manyworlds.cli.bench_env import make_env, measure_env, profile_env
    from manyworlds.tasks import load_env_cfg

    for name in _FOR_FILES:
        if getattr(args, name) != getattr(BenchOptions, name):
            raise ValueError(
                f"--{name.replace('_', '-')} is for model files, and '{args.file}' is a task, "
                "which has its own physics steps: leave it out."
            )
    cfg: Any = load_env_cfg(str(args.file))
    cfg.sim.engine = args.engine
    if args.engine == "auto" and not args.profile:
        cfg.sim.engine = "native"  # as the rollout that the task is compared with
    cfg.sim.num_threads = args.threads
    env = make_env(cfg, args.num_envs)
    if args.profile:
        print(profile_env(env, args.seconds))
        return 0
    result = measure_env(env, args.seconds)
    if args.as_json:
        print(json.dumps({"task": str(args.file)} | result))
        return 0
    print(
        f"env.step           {result['env_steps_per_s']:,.0f} control steps/s of {args.num_envs} "
        f"worlds, {result['num_threads']} threads\n"
        f"ratio              {result['ratio']:.3f} to mujoco.rollout "
        f"(median of rounds {result['ratio_median']:.3f})\n"
        f"resets             {100 * result['resets_share']:.1f} % of the worlds in a step"
    )
    return 0


def measure_physics(
    model: mujoco.MjModel,
    num_envs: int = 1024,
    num_threads: int = 0,
    nsubsteps: int = 4,
    seconds: float = 5.0,
    refresh: bool = False,
    engine: str = "auto",
    fields: Sequence[str] = DEFAULT_FIELDS,
    expand: Sequence[str] = (),
    progress: Callable[[float], None] | None = None,
) -> PhysicsSpeed:
    """Time `Simulation` against `mujoco.rollout`, in turns within this process.

    In each round both start from the same states, warmstarts and controls, and the simulation goes
    on from where it ends. It writes `ctrl` and reads `fields` at every call through its public
    tensors. The rollout takes all steps of a round in one call, which is how it is fastest.

    Args:
        model: the model. Worlds start at its first keyframe, else at `qpos0`, after settling.
        num_envs: worlds.
        num_threads: threads of both programs; 0 uses every core.
        nsubsteps: physics steps per call.
        seconds: measured time of both programs together [s].
        refresh: ask the simulation for kinematics at the new state, at the end of every call.
        engine: "auto", "native" or "warp".
        fields: fields of `sim.data` to read after every call.
        expand: model fields to give the simulation one row per world of, with compiled values.
        progress: called after every round with the share done, in [0, 1].

    Raises:
        ValueError: an argument is out of range.
    """
    _check(num_envs, num_threads, nsubsteps, seconds, engine)
    from manyworlds.sim.diagnostics.status import quiet_mujoco
    from manyworlds.utils.devices import torch_threads

    with torch_threads(1), quiet_mujoco():
        race = _Race(model, num_envs, num_threads, engine, tuple(fields), nsubsteps, refresh)
        race.sim.expand_model_fields(tuple(expand))
        race.prepare(round_seconds=min(_ROUND_SECONDS, seconds / 8))
        total = _Times()
        rounds: list[_Times] = []
        while total.wall < seconds:
            rounds.append(race.round(simulation_first=len(rounds) % 2 == 0))
            total.add(rounds[-1])
            if progress is not None:
                progress(min(total.wall / seconds, 1.0))
        return race.result(total, rounds)


@dataclass
class _Times:
    """Times of the two programs [s]."""

    sim_wall: float = 0.0
    sim_cpu: float = 0.0
    rollout_wall: float = 0.0
    rollout_cpu: float = 0.0

    @property
    def wall(self) -> float:
        return self.sim_wall + self.rollout_wall

    def add(self, other: _Times) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


class _Race:
    """Simulation and rollout that take turns."""

    def __init__(
        self,
        model: mujoco.MjModel,
        num_envs: int,
        num_threads: int,
        engine: str,
        fields: tuple[str, ...],
        nsubsteps: int,
        refresh: bool,
    ) -> None:
        import torch

        from manyworlds.cli.plain_rollout import PlainRollout, settled_rows
        from manyworlds.sim import Simulation, SimulationCfg
        from manyworlds.utils.devices import usable_cores

        self.fields = fields
        self.nsubsteps = nsubsteps
        self.refresh = refresh
        sim_cfg: Any = SimulationCfg(mujoco=None, num_threads=num_threads)
        sim_cfg.engine = engine
        self.sim = sim = Simulation(num_envs, sim_cfg, model)
        self.model = sim.mj_model
        self.threads = num_threads or usable_cores()
        self.rollout = PlainRollout(self.model, self.threads)
        self.layout = self.rollout.layout
        self.same_trajectory: bool | None = None
        if sim.is_bit_exact:
            self.same_trajectory = True
        self.contacts: list[int] = []

        rng = np.random.default_rng(0)
        sample = min(_SAMPLE, num_envs)
        self.rows, hold = settled_rows(self.rollout, sample, num_envs, _SETTLE_SECONDS, rng)
        for name in ("qpos", "qvel", "act"):
            columns = self.rows[:, self.layout.columns[name]]
            getattr(sim.data, name)[:] = torch.from_numpy(columns)
        self.hold = hold
        self.rng = rng

    def prepare(self, round_seconds: float) -> None:
        """Warm up, size the rounds and draw their controls."""
        import torch

        from manyworlds.cli.plain_rollout import control_sequence

        sim = self.sim
        nsubsteps = self.nsubsteps
        num_envs = self.sim.num_envs
        calls = self._calls_per_round(round_seconds)
        controls = control_sequence(self.model, self.hold, num_envs, calls, self.rng)
        self.ctrl = torch.from_numpy(controls.swapaxes(0, 1).astype(np.float32))
        self.ctrl = self.ctrl.contiguous().to(sim.device)
        self.control = None
        if self.model.nu:
            self.control = np.repeat(controls, nsubsteps, axis=1)
        self.nstep = calls * nsubsteps
        self.steps_per_round = num_envs * self.nstep
        self.rollout.prepare(num_envs, self.nstep)

    def round(self, simulation_first: bool) -> _Times:
        """Let each program take the same steps from the same states."""
        rows = self._state_rows()
        state = rows[:, self.layout.physics]
        warmstart = rows[:, self.layout.warmstart]
        times = _Times()
        for simulation in (simulation_first, not simulation_first):
            wall = perf_counter()
            cpu = process_time()
            if simulation:
                self._simulate()
                times.sim_wall = perf_counter() - wall
                times.sim_cpu = process_time() - cpu
            else:
                self.rollout(state, warmstart, self.control)
                times.rollout_wall = perf_counter() - wall
                times.rollout_cpu = process_time() - cpu
        if self.same_trajectory:
            reached = self._state_rows()[:, self.layout.physics]
            # The rollout leaves diverged worlds where they were.
            sane = ~_diverged(reached)
            self.same_trajectory = np.array_equal(reached[sane], self.rollout.states[sane, -1])
        every = max(1, self.sim.num_envs // _SAMPLE)
        qpos = self._read("qpos")[::every]
        for row in qpos[np.isfinite(qpos).all(axis=1)]:
            data = self.rollout.datas[0]
            data.qpos[:] = row
            mujoco.mj_fwdPosition(self.model, data)
            self.contacts.append(data.ncon)
        return times

    def result(self, total: _Times, rounds: list[_Times]) -> PhysicsSpeed:
        """Return what `measure_physics` returns."""
        steps = self.steps_per_round * len(rounds)
        cpu_ratio = contacts_mean = contacts_p95 = None
        if total.sim_cpu > 0:
            cpu_ratio = total.rollout_cpu / total.sim_cpu
        if self.contacts:
            contacts_mean = float(np.mean(self.contacts))
            contacts_p95 = float(np.percentile(self.contacts, 95))
        return {
            "engine": self.sim.engine,
            "num_envs": self.sim.num_envs,
            "num_threads": self.threads,
            "nsubsteps": self.nsubsteps,
            "refresh": self.refresh,
            "steps_per_s": steps / total.sim_wall,
            "rollout_steps_per_s": steps / total.rollout_wall,
            "ratio": total.rollout_wall / total.sim_wall,
            "ratio_median": float(np.median([r.rollout_wall / r.sim_wall for r in rounds])),
            "cpu_ratio": cpu_ratio,
            "contacts_mean": contacts_mean,
            "contacts_p95": contacts_p95,
            "diverged_worlds": self.diverged_worlds(),
            "same_trajectory": self.same_trajectory,
            "steps": steps,
            "rounds": len(rounds),
            "timestep": float(self.model.opt.timestep),
        }

    def diverged_worlds(self) -> int:
        """Count worlds whose state is not finite, or huge."""
        return int(_diverged(np.hstack([self._read("qpos"), self._read("qvel")])).sum())

    def _simulate(self) -> None:
        data = self.sim.data
        for ctrl in self.ctrl:
            data.ctrl[:] = ctrl
            self.sim.step(self.nsubsteps, refresh=self.refresh)
            for name in self.fields:
                getattr(data, name)
        if self.sim.device.type == "cuda":
            import torch

            torch.cuda.synchronize(self.sim.device)

    def _calls_per_round(self, round_seconds: float) -> int:
        """Warm up, and size a round by the simulation's time and by the memory of a rollout."""
        import torch

        ctrl = torch.from_numpy(self.hold).to(self.sim.device, torch.float32)
        self.ctrl = ctrl.expand(2, self.sim.num_envs, self.hold.size)
        self._simulate()
        start = perf_counter()
        self._simulate()
        per_call = (perf_counter() - start) / 2
        row = self.layout.physics.size + self.model.nsensordata + 2 * self.model.nu
        fits = _ROUND_BYTES // (8 * self.sim.num_envs * row * self.nsubsteps)
        calls = max(round_seconds / per_call, _ROUND_STEPS / self.nsubsteps)
        return int(max(1, min(calls, fits, 10_000)))

    def _state_rows(self) -> np.ndarray:
        """Return what the rollout needs to start where the simulation is, (num_envs, nstate)."""
        saved = self.sim.state_dict().get("state")
        if saved is not None and saved.shape == self.rows.shape:
            return saved.numpy()
        for name, columns in self.layout.columns.items():
            self.rows[:, columns] = self._read(name)
        return self.rows

    def _read(self, name: str) -> np.ndarray:
        return getattr(self.sim.data, name).cpu().numpy()


def _check(num_envs: int, num_threads: int, nsubsteps: int, seconds: float, engine: str) -> None:
    if num_envs < 1:
        raise ValueError(f"num_envs must be at least 1, got {num_envs}: ask for one world or more.")
    if num_threads < 0:
        raise ValueError(
            f"threads must not be negative, got {num_threads}: give 0 to use every core."
        )
    if nsubsteps < 1:
        raise ValueError(f"nsubsteps must be at least 1, got {nsubsteps}.")
    if not 0 < seconds < float("inf"):
        raise ValueError(f"seconds must be positive and finite, got {seconds}: try 5.")
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got '{engine}'.")


def _diverged(rows: np.ndarray) -> np.ndarray:
    return ~np.all(np.abs(rows) < _HUGE, axis=1)


def _report(result: PhysicsSpeed) -> str:
    r = result
    refresh = ""
    if r["refresh"]:
        refresh = ", then the kinematics"
    cpu = ""
    if r["cpu_ratio"] is not None:
        cpu = f", per CPU second {r['cpu_ratio']:.3f}"
    contacts = "unknown"
    if r["contacts_mean"] is not None:
        contacts = f"{r['contacts_mean']:.1f} (95th percentile {r['contacts_p95']:.0f})"
    same = {True: "equal bit for bit", False: "DIFFERENT", None: "not compared"}
    lines = [
        f"engine             {r['engine']}, {r['num_envs']} worlds, {r['num_threads']} threads, "
        f"{r['nsubsteps']} steps of {r['timestep']:g} s per call{refresh}",
        f"physics            {r['steps_per_s']:,.0f} physics steps/s",
        f"mujoco.rollout     {r['rollout_steps_per_s']:,.0f} physics steps/s",
        f"ratio              {r['ratio']:.3f} (median of {r['rounds']} rounds "
        f"{r['ratio_median']:.3f}{cpu})",
        f"contacts per world {contacts}",
        f"trajectories       {same[r['same_trajectory']]}",
    ]
    if r["diverged_worlds"]:
        lines.append(
            f"diverged worlds    {r['diverged_worlds']} of {r['num_envs']}: do not trust the "
            "figures; try a smaller timestep or other gains"
        )
    return "\n".join(lines)


@contextlib.contextmanager
def _progress_bar(shown: bool) -> Iterator[Callable[[float], None] | None]:
    if not shown:
        yield None
        return
    # Drawn between rounds only: a thread that draws would take time from what is measured.
    with new_progress(new_console(stderr=True), auto_refresh=False) as bar:
        task = bar.add_task("stepping", total=1.0)
        yield lambda share: bar.update(task, completed=share, refresh=True)
