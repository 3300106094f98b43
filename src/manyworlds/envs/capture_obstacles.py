"""Obstacles of an environment: what keeps its control step from being captured as a CUDA graph.

A captured step repeats its kernels without Python: it must not read values on the host, select
worlds by them, or copy from the host. Control steps are run on the paths of GPUs, on any device,
and the calls of torch that would break a capture are noted.
"""

from __future__ import annotations

import contextlib
import linecache
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import manyworlds
from manyworlds.managers.manager_base import ManagerBase
from manyworlds.validation.host_reads import gpu_paths
from manyworlds.validation.worlds import Worlds

if TYPE_CHECKING:
    from manyworlds.envs.manager_based_rl_env import ManagerBasedRlEnv

_STEPS = 6
_READ = "reads values on the host"
_SHAPE = "has a shape that depends on values"
_COPY = "copies values from the host"
_DRAW = "draws from a generator of torch"
_IDS = "takes ids of worlds, for which the host waits"
_BRANCH = "makes other operations in some steps than in others"
_NOT_BETWEEN_GRAPHS = ("CurriculumManager", "RecorderManager")
"""Managers whose terms change what Python reads later in the step, or look at all of it."""
_FOR_TERM = Worlds.for_term.__code__
_Tensor = torch.Tensor
_FUNCTIONS: dict[object, str] = {
    **dict.fromkeys(
        (
            _Tensor.item,
            _Tensor.tolist,
            _Tensor.numpy,
            _Tensor.cpu,
            _Tensor.__bool__,
            _Tensor.__int__,
            _Tensor.__float__,
            _Tensor.__index__,
            _Tensor.__array__,
            torch.equal,
            torch.allclose,
        ),
        _READ,
    ),
    **dict.fromkeys((torch.tensor, torch.as_tensor, torch.from_numpy), _COPY),
}
"""Functions of torch that a capture cannot contain."""
_OPERATIONS = {
    **dict.fromkeys(
        ("nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive"), _SHAPE
    ),
    **dict.fromkeys(
        (
            "bernoulli",
            "bernoulli_",
            "exponential_",
            "multinomial",
            "normal",
            "normal_",
            "rand",
            "rand_like",
            "randint",
            "randint_like",
            "randn",
            "randn_like",
            "random_",
            "randperm",
            "uniform_",
        ),
        _DRAW,
    ),
}
"""Operations below the functions, by name; functions make them in many ways."""
_INDEXING = ("index", "index_put", "index_put_")
_LIBRARIES = str(Path(torch.__file__).parents[1])
_OWN = str(Path(manyworlds.__file__).parent)


@dataclass(frozen=True)
class Obstacle:
    """Line of code that a captured step cannot contain."""

    term: str
    """Manager and name of the term that was called, such as "RewardManager term 'upright'"; empty
    outside terms."""
    file: str
    line: int
    problem: str
    """What the line does, as in "reads values on the host"."""

    @property
    def can_be_passed_by(self) -> bool:
        """True if the line belongs to a term that can run between two graphs."""
        return bool(self.term) and not self.term.startswith(_NOT_BETWEEN_GRAPHS)

    @property
    def code(self) -> str:
        """Text of the line."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        where = f"{self.file}, line {self.line}"
        if self.term:
            where = f"{self.term} ({where})"
        return f"{where} {self.problem}: {self.code}"


def obstacles_of(env: ManagerBasedRlEnv) -> list[Obstacle]:
    """Run control steps, and return what keeps them from being captured.

    Episodes end in some of the steps, intervals of events expire, and commands are sampled again,
    so that the code of resets and events is part of it.

    Args:
        env: the environment, which is in another state afterwards.

    Returns:
        Each line once, in the order in which they were met.
    """
    notes = _Notes(env)
    shape = (env.num_envs, env.action_manager.total_action_dim)
    generator = torch.Generator().manual_seed(0)
    actions = [torch.rand(shape, generator=generator).to(env.device) for _ in range(_STEPS)]
    for action in actions[:2]:  # what is made at its first use exists then
        _let_all_happen(env)
        env.step(action)
    with gpu_paths():
        for stream in env.random_streams.streams.values():
            stream.use(stream.states)
    for i, action in enumerate(actions):
        if i % 2:
            _let_all_happen(env)
        notes.begin_step()
        with gpu_paths(), _Functions(notes), _Operations(notes):
            env.step(action)
    notes.compare_steps()
    return list(notes.obstacles)


@contextlib.contextmanager
def noting(env: ManagerBasedRlEnv) -> Iterator[Mapping[Obstacle, None]]:
    """Run code on the paths of GPUs, and note what keeps it from being captured.

    Args:
        env: the environment that the code may step.

    Returns:
        Each line once, in the order in which they were met.
    """
    notes = _Notes(env)
    notes.begin_step()
    with gpu_paths(), _Functions(notes), _Operations(notes):
        yield notes.obstacles


def _let_all_happen(env: ManagerBasedRlEnv) -> None:
    """Let an episode end, all intervals of events expire, and all commands be sampled again."""
    env.episode_length_buf[0] = env.max_episode_length
    env.event_manager.expire()
    for name in env.command_manager.active_terms:
        env.command_manager.get_term(name).time_left.zero_()


class _Functions(TorchFunctionMode):
    """Notes functions of torch that a capture cannot contain."""

    def __init__(self, notes: _Notes) -> None:
        super().__init__()
        self._notes = notes

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Call a function, and note it."""
        problem = _FUNCTIONS.get(func)
        if problem == _COPY and (isinstance(args[0], _Tensor) or not (kwargs or {}).get("device")):
            problem = None  # it is on the device already, or stays on the host
        if problem is not None:
            self._notes.add(problem)
        return func(*args, **(kwargs or {}))


class _Operations(TorchDispatchMode):
    """Notes operations whose shape depends on values, random draws, and those of each step."""

    def __init__(self, notes: _Notes) -> None:
        super().__init__()
        self._notes = notes

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> object:
        """Make an operation, and note it."""
        name = func.overloadpacket.__name__
        problem = _OPERATIONS.get(name)
        if name in _INDEXING and _selects_by_mask(args[1]):
            problem = _SHAPE
        if problem is not None:
            self._notes.add(problem)
        self._notes.count((name, *map(_constant, args)))
        return func(*args, **(kwargs or {}))


def _constant(argument: object) -> object:
    """Return what a captured operation keeps of an argument: a shape, or a number of Python."""
    if isinstance(argument, _Tensor):
        return tuple(argument.shape)
    if isinstance(argument, int | float):
        return repr(argument)  # NaN is not equal to itself
    return None


def _selects_by_mask(indices: Sequence[torch.Tensor | None]) -> bool:
    return any(index is not None and index.dtype == torch.bool for index in indices)


class _Notes:
    """Obstacles, and the operations that each line of the control step makes in each step."""

    def __init__(self, env: ManagerBasedRlEnv) -> None:
        self.obstacles: dict[Obstacle, None] = {}
        self._steps: list[dict[tuple[str, str, int], Counter[object]]] = []
        self._step: CodeType = type(env).on_device.__code__
        # Code that reads ids on CPUs alone, and what the host reads when a step is complete.
        self._allowed = (Worlds.__init__.__code__, type(env)._tell.__code__)

    def begin_step(self) -> None:
        """Count the operations of another step from now on."""
        self._steps.append({})

    def add(self, problem: str) -> None:
        """Note an obstacle in the innermost line outside of libraries."""
        frames = list(_frames())
        if frames[0].f_code in self._allowed:
            return
        file = frames[0].f_code.co_filename
        line = frames[0].f_lineno
        for frame in frames:
            if frame.f_code is _FOR_TERM:  # the term that is about to be called
                code = frame.f_locals["func"].__code__
                file = code.co_filename
                line = code.co_firstlineno
                problem = _IDS
        self.obstacles[Obstacle(_term(frames), _short(file), line, problem)] = None

    def count(self, operation: object) -> None:
        """Count an operation of the present term and line of the control step."""
        frames = list(_frames())
        for frame in frames:
            if frame.f_code is self._step:
                line = _term(frames), frame.f_code.co_filename, frame.f_lineno
                self._steps[-1].setdefault(line, Counter())[operation] += 1

    def compare_steps(self) -> None:
        """Note the lines of the control step that do not make the same operations in each step."""
        lines = {line: None for step in self._steps for line in step}
        known = {obstacle.term for obstacle in self.obstacles if obstacle.term}
        for term, file, number in lines:
            if term in known:  # it reads or selects something, which is why
                continue
            made = [step.get((term, file, number), Counter()) for step in self._steps]
            if any(one != made[0] for one in made):
                self.obstacles[Obstacle(term, _short(file), number, _BRANCH)] = None


def _short(file: str) -> str:
    if file.startswith(_OWN):
        return str(Path("manyworlds") / Path(file).relative_to(_OWN))
    return file


def _frames() -> Iterator[FrameType]:
    """Iterate over the calls outside of libraries and of this file, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if file != __file__ and (file.startswith(_OWN) or not file.startswith(_LIBRARIES)):
            yield frame
        frame = frame.f_back


def _term(frames: Sequence[FrameType]) -> str:
    """Return the innermost term that a manager has called; empty for none."""
    for frame in frames:
        manager = frame.f_locals.get("self")
        name = frame.f_locals.get("name")
        if isinstance(manager, ManagerBase) and name in manager.term_objects:
            return f"{manager.kind} term '{name}'"
    return ""
