"""Control step as captured CUDA graphs, which repeat its kernels without Python.

The graphs contain everything from the processing of actions to the observations; there is one,
unless terms that cannot be captured run between several. Before them, the host copies the actions;
after them, it copies results, reads one report, and logs. What Python decides is decided once, at
the capture: a step that has other numbers or settings is captured again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from manyworlds.envs.capture_obstacles import Obstacle, obstacles_of
from manyworlds.envs.step_segments import MakeGraph, Segments, cuda_graph
from manyworlds.managers import SceneEntityCfg

if TYPE_CHECKING:
    from manyworlds.envs.manager_based_rl_env import ManagerBasedRlEnv

T = TypeVar("T")
Tell = Callable[[torch.Tensor, int, dict[str, object]], object]
_COMPARED_STEPS = 20
_DEPTH = 4  # of dictionaries and settings within settings


class StepGraph:
    """Control steps of an environment by graphs.

    Args:
        env: the environment.
        make_graph: function that makes an empty graph.
        eager: terms that cannot be captured, such as "RewardManager term 'upright'".
    """

    def __init__(
        self,
        env: ManagerBasedRlEnv,
        make_graph: MakeGraph = cuda_graph,
        eager: Collection[str] = (),
    ) -> None:
        self._env = env
        self._make_graph = make_graph
        self._eager = eager
        self._segments: Segments | None = None
        self._settings: object = None
        with torch.inference_mode(False):
            width = env.action_manager.total_action_dim
            self._action = torch.zeros(env.num_envs, width, device=env.device)
        self.captures = 0
        """Number of captures so far."""
        self.segments = 0
        """Number of graphs of a control step, between which terms are called by Python."""
        self._unread: list[tuple[torch.Tensor, int, dict[str, object]]] | None = None

    def forget(self) -> None:
        """Capture again at the next step, because something was changed from outside."""
        self._segments = None

    @contextlib.contextmanager
    def reporting_later(self, tell: Tell) -> Iterator[None]:
        """Read what the host reads of steps at the end of this context, at once.

        Args:
            tell: function that is given the report of each step, its number of timers and its log.
        """
        unread: list[tuple[torch.Tensor, int, dict[str, object]]] = []
        self._unread = unread
        try:
            yield
        finally:
            self._unread = None
        if unread:
            reports = torch.stack([report for report, _, _ in unread]).cpu()
            for report, (_, num_timers, log) in zip(reports, unread, strict=True):
                tell(report, num_timers, log)

    def step(self, action: torch.Tensor) -> tuple[torch.Tensor, int] | None:
        """Make the part of a control step that runs on the device.

        The environment then has its results, in tensors that later steps do not overwrite.

        Args:
            action: actions, shape [num_envs, total_action_dim].

        Returns:
            All that the host reads of the step; see `ManagerBasedRlEnv.on_device`. None if it is
            read later.
        """
        env = self._env
        self._action.copy_(action)
        step = env.common_step_counter + 1
        settings = self._settings_at(step)
        if self._segments is None or settings != self._settings:
            self._capture()
            self._settings = settings  # curricula may have changed some since
        else:
            self._segments.replay()
            env.common_step_counter = step
            self._logged_by_python = env.extras["log"]
        env.obs_buf = _copy(self._obs)
        reward, terminated, time_outs, report = self._results
        env.reward_buf = reward.clone()
        env.reset_terminated = terminated.clone()
        env.reset_time_outs = time_outs.clone()
        logged = dict(zip(self._logged, self._log.clone().unbind(), strict=True))
        log: dict[str, object] = {**self._unlogged, **logged, **self._logged_by_python}
        env.extras = {"log": log, **_copy(self._extras)}
        if self._unread is not None:
            self._unread.append((report.clone(), self._num_timers, log))
            return None
        return report, self._num_timers

    def _capture(self) -> None:
        """Record a control step with the present actions, and make it."""
        env = self._env
        segments = Segments(env, self._make_graph, self._eager)
        env.extras = {"log": {}}
        with torch.inference_mode(False), torch.no_grad(), segments.record():
            read = _run(env.on_device(self._action, merge=True))
            assert read is not None  # masks name the worlds
            report, self._num_timers = read
            log = {n: v for n, v in env.extras["log"].items() if n not in segments.logged}
            self._logged = [name for name, value in log.items() if _is_number_on(env.device, value)]
            values = [log[name].float().reshape(()) for name in self._logged]
            self._log = torch.stack(values) if values else self._action.new_zeros(0)
        self._logged_by_python = segments.logged
        self._unlogged = {name: log[name] for name in log if name not in self._logged}
        self._extras = {name: value for name, value in env.extras.items() if name != "log"}
        self._obs = env.obs_buf
        self._results = env.reward_buf, env.reset_terminated, env.reset_time_outs, report
        self._segments = segments
        self.captures += 1
        self.segments = segments.count

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


def why_not_equal(env: ManagerBasedRlEnv, graph: StepGraph) -> str | None:
    """Compare control steps of a graph with those of Python, and return to the present state.

    Args:
        env: the environment.
        graph: the graph.

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
        for used in (None, graph):
            env.load_state_dict(state)
            env.step_graph = used
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


def captured(
    env: ManagerBasedRlEnv, *, strict: bool, make_graph: MakeGraph = cuda_graph
) -> StepGraph | None:
    """Return the graphs of an environment's control steps, None if they differ from them.

    Terms that cannot be captured run between graphs, and are named in a warning.

    Args:
        env: the environment.
        strict: whether one graph must contain the step, and to raise an error instead of a
            warning.
        make_graph: function that makes an empty graph.

    Raises:
        RuntimeError: the step cannot be captured, or differs, and `strict` is set.
    """
    problem = _problem(env, make_graph)
    eager: dict[str, Obstacle] = {}
    if problem is None:
        state = env.state_dict()
        try:
            obstacles = obstacles_of(env)
        finally:
            env.load_state_dict(state)
        for obstacle in obstacles:
            if strict or not obstacle.can_be_passed_by:
                problem = f"{obstacle}"
                break
            eager.setdefault(obstacle.term, obstacle)
    if problem is None:
        trial = StepGraph(env, make_graph, eager)
        try:
            different = why_not_equal(env, trial)
        except Exception as error:  # of CUDA, of Warp, or of a term that finds itself captured
            problem = f"{error}"
        else:
            if different is None:
                _name(eager, trial.segments)
                return StepGraph(env, make_graph, eager)
            problem = f"a captured step gives other {different}"
    message = (
        f"The control step is not captured: {problem}. Set SimulationCfg.capture='off', or find "
        "the lines that prevent it with `manyworlds validate TASK --capture`."
    )
    if strict:
        raise RuntimeError(message)
    warnings.warn(message, stacklevel=4)
    return None


def _name(eager: Mapping[str, Obstacle], segments: int) -> None:
    """Name the terms that run between graphs, each once."""
    if not eager:
        return
    terms = [
        f"{obstacle.term} is not capturable: {obstacle.file}:{obstacle.line} {obstacle.problem}"
        for obstacle in eager.values()
    ]
    warnings.warn(f"{'; '.join(terms)}; the step has {segments} segments.", stacklevel=5)


def _problem(env: ManagerBasedRlEnv, make_graph: MakeGraph) -> str | None:
    """Return what does not repeat without Python, if there is anything."""
    if make_graph is cuda_graph and env.device.type != "cuda":
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
