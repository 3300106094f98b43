"""Control step as one captured CUDA graph, which repeats its kernels without Python.

The graph contains everything from the processing of actions to the observations. Before it, the
host copies the actions; after it, it copies results, reads one report, and logs. What Python
decides is decided once, at the capture: a step that has other numbers or settings is captured
again.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import torch

from manyworlds.managers import SceneEntityCfg

if TYPE_CHECKING:
    from manyworlds.envs.manager_based_rl_env import ManagerBasedRlEnv

T = TypeVar("T")
_COMPARED_STEPS = 20
_DEPTH = 4  # of dictionaries and settings within settings


class Graph(Protocol):
    """Operations that are recorded once, and repeated."""

    has_run: bool
    """True if what is recorded is also done."""

    def record(self) -> AbstractContextManager[None]:
        """Record what is done within this context."""
        ...

    def replay(self) -> None:
        """Repeat what was recorded."""
        ...


class CudaGraph:
    """CUDA graph of kernels of torch and of MuJoCo Warp, on one stream and one memory pool.

    Args:
        env: the environment.
    """

    has_run = False

    def __init__(self, env: ManagerBasedRlEnv) -> None:
        self._sim = env.sim
        self._graph = torch.cuda.CUDAGraph()

    @contextmanager
    def record(self) -> Iterator[None]:
        """Record what is done within this context, without doing it."""
        stream = torch.cuda.Stream(self._sim.device)
        mode = "thread_local"  # other threads may use the GPU meanwhile
        with (
            torch.cuda.graph(self._graph, stream=stream, capture_error_mode=mode),
            self._sim.captured_on(stream),
        ):
            yield

    def replay(self) -> None:
        """Repeat what was recorded."""
        self._graph.replay()


class StepGraph:
    """Control steps of an environment by a graph.

    Args:
        env: the environment.
        make_graph: function that makes an empty graph.
    """

    def __init__(
        self, env: ManagerBasedRlEnv, make_graph: Callable[[ManagerBasedRlEnv], Graph] = CudaGraph
    ) -> None:
        self._env = env
        self._make_graph = make_graph
        self._graph: Graph | None = None
        self._settings: object = None
        with torch.inference_mode(False):
            width = env.action_manager.total_action_dim
            self._action = torch.zeros(env.num_envs, width, device=env.device)
        self.captures = 0
        """Number of captures so far."""

    def forget(self) -> None:
        """Capture again at the next step, because something was changed from outside."""
        self._graph = None

    def step(self, action: torch.Tensor) -> tuple[torch.Tensor, int]:
        """Make the part of a control step that runs on the device.

        The environment then has its results, in tensors that later steps do not overwrite.

        Args:
            action: actions, shape [num_envs, total_action_dim].

        Returns:
            All that the host reads of the step; see `ManagerBasedRlEnv.on_device`.
        """
        env = self._env
        self._action.copy_(action)
        settings = self._settings_at(env.common_step_counter + 1)
        if self._graph is None or settings != self._settings:
            self._capture()
            self._settings = settings  # curricula may have changed some since
        else:
            env.common_step_counter += 1
            self._graph.replay()
        env.obs_buf = _copy(self._obs)
        reward, terminated, time_outs, report = self._results
        env.reward_buf = reward.clone()
        env.reset_terminated = terminated.clone()
        env.reset_time_outs = time_outs.clone()
        logged = dict(zip(self._logged, self._log.clone().unbind(), strict=True))
        env.extras = {"log": {**self._unlogged, **logged}, **_copy(self._extras)}
        return report, self._num_timers

    def _capture(self) -> None:
        """Record a control step with the present actions, and make it."""
        env = self._env
        graph = self._make_graph(env)
        env.extras = {"log": {}}
        with torch.inference_mode(False), torch.no_grad(), graph.record():
            read = _run(env.on_device(self._action, merge=True))
            assert read is not None  # masks name the worlds
            report, self._num_timers = read
            log = env.extras["log"]
            self._logged = [name for name, value in log.items() if _is_number_on(env.device, value)]
            values = [log[name].float().reshape(()) for name in self._logged]
            self._log = torch.stack(values) if values else self._action.new_zeros(0)
        if not graph.has_run:
            graph.replay()
        self._unlogged = {name: log[name] for name in log if name not in self._logged}
        self._extras = {name: value for name, value in env.extras.items() if name != "log"}
        self._obs = env.obs_buf
        self._results = env.reward_buf, env.reset_terminated, env.reset_time_outs, report
        self._graph = graph
        self.captures += 1

    def _settings_at(self, step: int) -> object:
        """Return what Python reads in a control step: numbers of terms, and stages of curricula."""
        env = self._env
        managers = (
            env.reward_manager,
            env.termination_manager,
            env.event_manager,
            env.command_manager,
            env.curriculum_manager,
        )
        read: list[object] = [env.cfg.auto_reset, env.sim.layout]
        for manager in managers:
            for name in manager.term_objects:
                cfg = manager.get_term_cfg(name)
                stages = _stages(getattr(cfg, "params", {}), step)
                read.append((name, _numbers(vars(cfg)), stages))
        return read


def _run(steps: Generator[object, None, T]) -> T:
    """Iterate to the end, and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def why_not_equal(
    env: ManagerBasedRlEnv, make_graph: Callable[[ManagerBasedRlEnv], Graph] = CudaGraph
) -> str | None:
    """Compare control steps of a graph with those of Python, and return to the present state.

    Args:
        env: the environment.
        make_graph: function that makes an empty graph.

    Returns:
        Name of the first result that differs in any bit, None if none does.
    """
    generator = torch.Generator().manual_seed(0)
    shape = (_COMPARED_STEPS, env.num_envs, env.action_manager.total_action_dim)
    actions = torch.randn(shape, generator=generator).to(env.device)
    state = env.state_dict()
    seen: list[list[dict[str, torch.Tensor]]] = []
    try:
        for action in actions[:2]:  # what is made at its first use exists then
            env.step(action)
        for graph in (None, StepGraph(env, make_graph)):
            env.load_state_dict(state)
            env.step_graph = graph
            seen.append([_results_of(env, action) for action in actions])
    finally:
        env.step_graph = None
        env.load_state_dict(state)
    for step, (one, other) in enumerate(zip(*seen, strict=True)):
        for name, value in one.items():
            if not torch.equal(value.nan_to_num(), other[name].nan_to_num()):
                return f"{name} after step {step + 1}"
    return None


def _results_of(env: ManagerBasedRlEnv, action: torch.Tensor) -> dict[str, torch.Tensor]:
    """Step, and return all that must not differ, by name."""
    obs, reward, terminated, truncated, _ = env.step(action)
    results = dict(_tensors(obs, "observations"))
    results |= {"rewards": reward, "terminated": terminated, "truncated": truncated}
    results |= {"qpos": env.sim.data.qpos.clone(), "qvel": env.sim.data.qvel.clone()}
    return results


def captured(env: ManagerBasedRlEnv, *, strict: bool) -> StepGraph | None:
    """Return the graph of an environment's control steps, None if it differs from them.

    Args:
        env: the environment.
        strict: whether to raise an error instead of a warning.

    Raises:
        RuntimeError: the step cannot be captured, or differs, and `strict` is set.
    """
    problem = _problem(env)
    if problem is None:
        try:
            different = why_not_equal(env)
        except RuntimeError as error:  # of CUDA or of Warp
            problem = f"{error}"
        else:
            if different is None:
                return StepGraph(env)
            problem = f"a captured step gives other {different}"
    message = (
        f"The control step is not captured: {problem}. Set SimulationCfg.capture='off', or find "
        "the lines that prevent it with `manyworlds validate TASK --capture`."
    )
    if strict:
        raise RuntimeError(message)
    warnings.warn(message, stacklevel=4)
    return None


def _problem(env: ManagerBasedRlEnv) -> str | None:
    """Return what does not repeat without Python, if there is anything."""
    if env.device.type != "cuda":
        return f"its worlds are on '{env.device}', and graphs need an NVIDIA GPU"
    if env.sim.nan_guard is not None:
        return "the NaN guard looks at each step"
    if env.recorder_manager.active_terms:
        return f"recorders read each step: {', '.join(env.recorder_manager.active_terms)}"
    counting = env.event_manager.counts_steps
    if counting:
        return f"Python counts steps for events: {', '.join(counting)}"
    return None


def _is_number_on(device: torch.device, value: object) -> bool:
    """Return True for a number on the device; others, as of curricula, are those of Python."""
    return isinstance(value, torch.Tensor) and value.numel() == 1 and value.device == device


def _copy(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, Mapping):
        return {key: _copy(item) for key, item in value.items()}
    return value


def _tensors(value: Any, name: str) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield name, value
    else:
        for key, item in value.items():
            yield from _tensors(item, f"{name} '{key}'")


def _numbers(value: object, depth: int = _DEPTH) -> object:
    """Return the plain values within settings; objects of the scene are left out."""
    if isinstance(value, int | float | str | bool | None):
        return value
    if depth == 0 or isinstance(value, SceneEntityCfg | torch.Tensor):
        return None
    if isinstance(value, Mapping):
        return tuple((key, _numbers(item, depth - 1)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return tuple(_numbers(item, depth - 1) for item in value)
    if dataclasses.is_dataclass(value):
        return _numbers(vars(value), depth - 1)
    return None


def _stages(params: Mapping[str, object], step: int) -> list[bool]:
    """Return which stages of a curriculum have begun."""
    begun: list[bool] = []
    for value in params.values():
        if isinstance(value, list | tuple):
            begun += [stage["step"] <= step for stage in value if _is_stage(stage)]
    return begun


def _is_stage(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("step"), int)
