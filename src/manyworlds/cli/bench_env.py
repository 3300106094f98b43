"""Times of a task's control step, as a whole relative to MuJoCo's rollout, or part by part."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, TypedDict

import numpy as np
import torch

from manyworlds.cli.plain_rollout import PlainRollout
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.sim.diagnostics.status import quiet_mujoco
from manyworlds.utils.devices import torch_threads
from manyworlds.utils.table import render_table

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnvCfg

_ACTIONS = 16
"""Number of random actions, which the steps take in turn."""
_LONGEST = 10_000
"""Upper bound of the first episode's length, for tasks with endless episodes [control steps]."""
_ROUND_WORLD_STEPS = 4096
_METHODS = ("process_action", "apply_action", "compute", "compute_substep", "apply", "reset")


class EnvSpeed(TypedDict):
    """Speed of `env.step`, and of `mujoco.rollout` with as many physics steps."""

    num_envs: int
    num_threads: int
    env_steps_per_s: float
    """Control steps of single worlds [1/s]."""
    step_us: float
    """Time of a control step of all worlds [us]."""
    rollout_us: float
    """Time of as many physics steps of the rollout [us]."""
    ratio: float
    """Ratio of the sums of times, the rollout's to the environment's."""
    ratio_median: float
    """Median of that ratio over rounds."""
    resets_share: float
    """Share of the worlds that a step resets."""


def make_env(cfg: ManagerBasedRlEnvCfg, num_envs: int) -> ManagerBasedRlEnv:
    """Build an environment with a number of worlds."""
    cfg.scene.num_envs = num_envs
    cfg.seed = 1
    return ManagerBasedRlEnv(cfg)


def measure_env(env: ManagerBasedRlEnv, seconds: float = 5.0) -> EnvSpeed:
    """Time `env.step` against `mujoco.rollout`, in turns within this process.

    In each round the environment takes some steps with random actions, uniform in [-1, 1], resets
    included; the rollout takes as many physics steps, with the controls of the same actions, from
    the states that the environment began with.

    Args:
        env: an environment on the native engine.
        seconds: measured time of both programs together [s].

    Raises:
        ValueError: the environment is on another engine.
    """
    sim = env.sim
    decimation = env.cfg.decimation
    if not sim.is_bit_exact:
        raise ValueError(
            f"The rollout is MuJoCo C, which the engine '{sim.engine}' does not follow bit for "
            "bit: use engine='native'."
        )
    steps = max(4, _ROUND_WORLD_STEPS // env.num_envs)
    with torch_threads(1), quiet_mujoco():
        actions, controls = _random_actions(env)
        rollout = PlainRollout(sim.mj_model, sim.num_threads)
        rollout.prepare(env.num_envs, steps * decimation)
        layout = rollout.layout
        times: list[tuple[float, float]] = []
        resets = 0.0
        taken = 0
        total = 0.0
        while total < seconds or len(times) < 3:
            rows = sim.state_dict()["state"].numpy()
            state = rows[:, layout.physics]
            warmstart = rows[:, layout.warmstart]
            chosen = np.arange(taken, taken + steps) % _ACTIONS
            control = np.repeat(controls[:, chosen], decimation, axis=1)
            began = perf_counter()
            for i in chosen:
                env.step(actions[i])
                resets += float(env.reset_buf.float().mean())
            between = perf_counter()
            rollout(state, warmstart, control)
            ended = perf_counter()
            times.append((between - began, ended - between))
            total += ended - began
            taken += steps
    whole, plain = np.array(times[1:]).T  # the first round warms up
    return {
        "num_envs": env.num_envs,
        "num_threads": sim.num_threads,
        "env_steps_per_s": env.num_envs * steps * len(whole) / whole.sum(),
        "step_us": 1e6 * whole.mean() / steps,
        "rollout_us": 1e6 * plain.mean() / steps,
        "resets_share": resets / taken,
        "ratio": plain.sum() / whole.sum(),
        "ratio_median": float(np.median(plain / whole)),
    }


def profile_env(env: ManagerBasedRlEnv, seconds: float = 5.0) -> str:
    """Measure the time that managers and terms take in `env.step`, and return a table.

    The time of a row excludes the times of other rows, so that all rows add up. The term that reads
    a field of the simulation first pays for its copy.
    """
    clock = _Clock()
    with torch_threads(1), quiet_mujoco():
        actions, _ = _random_actions(env)
        for _ in range(3):
            env.step(actions[0])
        with contextlib.ExitStack() as restore:
            for label, owner, name in _parts(env):
                restore.enter_context(_patched(owner, name, clock.timed(label, owner, name)))
            step = clock.timed("the rest of env.step", env, "step")
            steps = 0
            end = perf_counter() + seconds
            while steps < 10 or perf_counter() < end:
                step(actions[steps % _ACTIONS])
                steps += 1
    return _report(env, clock, steps)


@dataclass
class _Spent:
    calls: int = 0
    seconds: float = 0.0


class _Clock:
    """Sums of the times within functions, without the timed functions that they call."""

    def __init__(self) -> None:
        self.spent: dict[str, _Spent] = {}
        self._inner = [0.0]

    def timed(self, label: str, owner: object, name: str) -> Callable[..., object]:
        function = getattr(owner, name)
        spent = self.spent.setdefault(label, _Spent())
        inner = self._inner

        def call(*args: object, **kwargs: object) -> object:
            inner.append(0.0)
            start = perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                whole = perf_counter() - start
                spent.calls += 1
                spent.seconds += whole - inner.pop()
                inner[-1] += whole

        return call


@contextlib.contextmanager
def _patched(owner: object, name: str, value: object) -> Iterator[None]:
    """Replace an attribute of an object within a `with` block."""
    own = vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)


def _parts(env: ManagerBasedRlEnv) -> Iterator[tuple[str, object, str]]:
    """Yield the timed functions: label, object, and name of the function."""
    for name in ("step", "forward", "reset"):
        yield f"physics: {name}", env.sim, name
    for name in ("write_data_to_sim", "update", "reset"):
        yield f"scene: {name}", env.scene, name
    for name, sensor in env.scene.sensors.items():
        yield f"sensor: {name}", sensor, "_compute_data"
    for attribute, manager in list(vars(env).items()):
        if not attribute.endswith("_manager"):
            continue
        kind = attribute.removesuffix("_manager")
        for name in _METHODS:
            if hasattr(manager, name):
                yield f"{kind}: {name}", manager, name
        for name, term in _terms(manager):
            yield f"{kind} term: {name}", term, "func"


def _terms(manager: object) -> Iterator[tuple[str, object]]:
    groups = getattr(manager, "_groups", {})
    for group, cfg in groups.items():
        yield from ((f"{group}/{name}", term) for name, term in cfg.terms.items())
    for name, term in getattr(manager, "_terms", {}).items():
        if hasattr(term, "func"):
            yield name, term


def _report(env: ManagerBasedRlEnv, clock: _Clock, steps: int) -> str:
    total = sum(spent.seconds for spent in clock.spent.values())
    order = sorted(clock.spent.items(), key=lambda item: -item[1].seconds)
    rows = [
        [
            label,
            round(spent.calls / steps, 2),
            round(1e6 * spent.seconds / spent.calls, 1),
            round(1e6 * spent.seconds / steps, 1),
            round(100.0 * spent.seconds / total, 1),
        ]
        for label, spent in order
        if spent.calls
    ]
    physics = sum(s.seconds for label, s in clock.spent.items() if label.startswith("physics"))
    title = (
        f"{env.num_envs} worlds, {env.sim.engine} engine: {1e6 * total / steps:,.0f} us a step, "
        f"physics {100 * physics / total:.0f} %"
    )
    return render_table(title, ("part", "calls a step", "us a call", "us a step", "%"), rows)


def _random_actions(env: ManagerBasedRlEnv) -> tuple[list[torch.Tensor], np.ndarray]:
    """Draw actions; return them and the controls that they set, shape [num_envs, actions, nu].

    Afterwards, episodes and timers of events are at random phases.
    """
    shape = (env.num_envs, env.action_manager.total_action_dim)
    actions = [2.0 * torch.rand(shape, device=env.device) - 1.0 for _ in range(_ACTIONS)]
    controls = []
    for action in actions:
        env.action_manager.process_action(action)
        env.action_manager.apply_action()
        env.scene.write_data_to_sim()
        controls.append(env.sim.data.ctrl.cpu().numpy().astype(float))
    env.reset()
    env.episode_length_buf.random_(0, min(env.max_episode_length, _LONGEST))
    env.event_manager.randomize_timers()
    return actions, np.stack(controls, axis=1)
