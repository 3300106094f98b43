"""Control step in segments: graphs, and between them the terms that no graph can contain."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import torch

from manyworlds.envs.host_state import Change, HostState, fits, fixed_copy, tensors_of
from manyworlds.managers.manager_base import ManagerTermBase
from manyworlds.sim import Simulation
from manyworlds.sim.views import StructView
from manyworlds.validation.worlds import Worlds

if TYPE_CHECKING:
    from manyworlds.envs.manager_based_rl_env import ManagerBasedRlEnv

T = TypeVar("T")

_NOT_OF_THE_STEP = ("cfg", "step_graph", "observers", "attached_states", "renderer")
_MADE_ANEW = ("common_step_counter", "extras")  # in each step, whether it is captured or not
_MEMORY = (Simulation, StructView)  # whose tensors are the memory of the engine


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
    """CUDA graph of kernels of torch and of other libraries, on one stream and one memory pool.

    Args:
        device: the GPU.
        within: function that returns a context in which kernels of other libraries are captured on
            a stream; None for torch's alone.
        before: graph that is always replayed before this one, whose tensors it reads.
    """

    has_run = False

    def __init__(
        self,
        device: torch.device,
        within: Callable[[torch.cuda.Stream], AbstractContextManager[None]] | None = None,
        before: Graph | None = None,
    ) -> None:
        self._within = within
        self._graph = torch.cuda.CUDAGraph()
        self._stream: torch.cuda.Stream
        self._pool: Any = None
        if isinstance(before, CudaGraph):
            self._stream = before._stream
            self._pool = before._graph.pool()
        else:
            self._stream = torch.cuda.Stream(device)

    @contextmanager
    def record(self) -> Iterator[None]:
        """Record what is done within this context, without doing it."""
        mode = "thread_local"  # other threads may use the GPU meanwhile
        graph = torch.cuda.graph(
            self._graph, pool=self._pool, stream=self._stream, capture_error_mode=mode
        )
        others: AbstractContextManager[None] = contextlib.nullcontext()
        if self._within is not None:
            others = self._within(self._stream)
        with graph, others:
            yield

    def replay(self) -> None:
        """Repeat what was recorded."""
        self._graph.replay()


MakeGraph = Callable[["ManagerBasedRlEnv", "Graph | None"], Graph]
"""Function that makes an empty graph of an environment, to be replayed after another one."""


def cuda_graph(env: ManagerBasedRlEnv, before: Graph | None = None) -> Graph:
    """Return an empty CUDA graph for kernels of torch and of MuJoCo Warp."""
    return CudaGraph(env.device, env.sim.captured_on, before)


class Segments:
    """Control step that is recorded once, and repeated: graphs, and the calls between them.

    Terms that cannot be captured are called by Python. What they return, and the tensors that they
    assign to attributes, are passed to the graphs in fixed memory; and they find the attributes
    that captured code assigns as they were when the step was recorded.

    Args:
        env: the environment.
        make_graph: function that makes an empty graph.
        eager: terms that cannot be captured, such as "RewardManager term 'upright'".
    """

    def __init__(
        self, env: ManagerBasedRlEnv, make_graph: MakeGraph, eager: Collection[str] = ()
    ) -> None:
        self._env = env
        self._make_graph = make_graph
        self._eager = eager
        self._first_step = env.common_step_counter
        self._nodes: list[_GraphNode | _CallNode] = []
        self._stack = contextlib.ExitStack()
        self.logged: dict[str, object] = {}
        """Values that eager terms have logged while the step was recorded."""

    @property
    def count(self) -> int:
        """Number of graphs."""
        return sum(isinstance(node, _GraphNode) for node in self._nodes)

    @contextmanager
    def record(self) -> Iterator[None]:
        """Record the control step that is made within this context."""
        self._begin()
        try:
            yield
            self._end()
        except BaseException:
            with contextlib.suppress(RuntimeError):  # of CUDA, about a capture that has failed
                self._stack.close()
            raise
        finally:
            self._tell_managers(None)

    def replay(self) -> None:
        """Repeat the control step."""
        self._first_step = self._env.common_step_counter
        for node in self._nodes:
            node.replay(self._first_step)

    def breaks_at(self, kind: str, name: str) -> bool:
        """Return whether a term of a kind of manager is called between two graphs."""
        return f"{kind} term '{name}'" in self._eager

    def call(self, function: Callable[..., T], *args: object, writes: bool = False) -> T:
        """Call a part of a term between two graphs, now and at each replay.

        Args:
            function: the call.
            args: its arguments, which are the same at each replay.
            writes: whether it may write the state of worlds in some steps.

        Returns:
            The result in fixed memory; its numbers are tensors of shape [].
        """
        self._end()
        node = _CallNode(self._env, function, args, writes, self._first_step)
        logged = dict(self._env.extras["log"])
        result = node.record()
        for name, value in self._env.extras["log"].items():
            if name not in logged or logged[name] is not value:
                self.logged[name] = value
        self._nodes.append(node)
        self._begin()
        return cast("T", result)

    def _begin(self) -> None:
        """Begin the next graph."""
        before: Graph | None = None
        for node in self._nodes:
            if isinstance(node, _GraphNode):
                before = node.graph
        self._before = _state_of(self._env) if self._eager else None
        self._graph = self._make_graph(self._env, before)
        self._stack.enter_context(self._graph.record())
        self._tell_managers(self)

    def _end(self) -> None:
        """End the present graph, and do what it has recorded."""
        self._tell_managers(None)
        self._stack.close()
        changes: list[Change] = []
        if self._before is not None:
            changes = self._before.changes_to(_state_of(self._env))
        if not self._graph.has_run:
            self._graph.replay()
        self._nodes.append(_GraphNode(self._graph, changes))

    def _tell_managers(self, capture: Segments | None) -> None:
        env = self._env
        for manager in (
            env.action_manager,
            env.command_manager,
            env.event_manager,
            env.metrics_manager,
            env.observation_manager,
            env.reward_manager,
            env.termination_manager,
        ):
            manager.capture = capture


class _GraphNode:
    """Graph, and what Python assigned while it was recorded."""

    def __init__(self, graph: Graph, changes: list[Change]) -> None:
        self.graph = graph
        self._changes = changes

    def replay(self, first_step: int) -> None:
        """Repeat it."""
        self.graph.replay()
        for change in self._changes:
            change.apply()


class _CallNode:
    """Call between two graphs; see `Segments.call`."""

    def __init__(
        self,
        env: ManagerBasedRlEnv,
        function: Callable[..., object],
        args: tuple[object, ...],
        writes: bool,
        first_step: int,
    ) -> None:
        self._env = env
        self._function = function
        self._args = args
        self._steps = env.common_step_counter - first_step  # of the counter, by this call
        self._passed: list[Change] = []
        self._caches: list[Change] = []
        self._outdated: torch.Tensor | None = None
        if writes or env.sim.outdated is not None:
            self._outdated = torch.zeros_like(env.reset_buf)

    def record(self) -> object:
        """Call it for the first time, and return its result in fixed memory."""
        env = self._env
        before = _state_of(env, _MEMORY)
        self._result = fixed_copy(self._call(), env.device)
        for change in before.changes_to(_state_of(env, _MEMORY)):
            # A sensor was to measure again; a term may keep None for reasons of its own.
            if change.before is None and not isinstance(change.container, ManagerTermBase):
                self._caches.append(change._replace(value=None))
            if any(True for _ in tensors_of(change.value)):
                # What is made at its first use may be a view of memory that others write.
                if not change.is_first:
                    change = change._replace(value=fixed_copy(change.value, env.device))
                self._passed.append(change)
                change.apply()
        return self._result

    def replay(self, first_step: int) -> None:
        """Call it, and write what it returns and assigns to the same memory."""
        self._env.common_step_counter = first_step + self._steps
        result = fixed_copy(self._call(), self._env.device)
        if not fits(self._result, result):
            raise ValueError(
                f"{self._function.__qualname__} returned {_shapes(result)}, but "
                f"{_shapes(self._result)} when the control step was captured: return tensors of "
                "the same shape and type in each step, or set SimulationCfg.capture='off'."
            )
        new = [*tensors_of(result)]
        old = [*tensors_of(self._result)]
        for change in self._passed:
            now = change.now
            if now is not change.value and fits(now, change.value):
                new += [tensor.clone() for tensor in tensors_of(now)]
                old += tensors_of(change.value)
                change.apply()
        for fixed, tensor in zip(old, new, strict=True):
            fixed.copy_(tensor)

    def _call(self) -> object:
        for cache in self._caches:
            cache.apply()
        # Worlds keep the ids that the host has read, which are others in each step.
        args = []
        for value in self._args:
            if isinstance(value, Worlds) and value.is_masked:
                value = Worlds.masked(value.mask)
            args.append(value)
        result = self._function(*args)
        if self._outdated is not None:
            self._env.sim.keep_outdated_in(self._outdated)
        return result


def _state_of(env: ManagerBasedRlEnv, opaque: tuple[type, ...] = ()) -> HostState:
    return HostState(env, (*_NOT_OF_THE_STEP, *_MADE_ANEW), opaque)


def _shapes(value: object) -> str:
    shapes = [f"{tuple(tensor.shape)} {tensor.dtype}" for tensor in tensors_of(value)]
    return ", ".join(shapes) or "no tensors"
