"""Recording and repeating of the random numbers that one world of a batch draws.

A batch draws numbers for all worlds at once, from one stream. A recorder keeps the row of one world
of each draw of torch; a replay gives these rows to the same code in an environment of that world.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from manyworlds.utils.draws import COUPLED, TAPES
from manyworlds.validation.worlds import EnvIds, Worlds

_DRAWN = {
    *(torch.rand, torch.randn, torch.randint, torch.randperm, torch.normal, torch.multinomial),
    *(torch.rand_like, torch.randn_like, torch.randint_like, torch.bernoulli, torch.poisson),
    *(torch.Tensor.multinomial, torch.Tensor.bernoulli),
}
"""Functions that return random numbers."""
_NAMES = ("uniform", "normal", "random", "exponential", "bernoulli", "cauchy", "geometric")
_FILLED = {*(getattr(torch.Tensor, f"{name}_") for name in (*_NAMES, "log_normal"))}
"""Methods that fill a tensor with random numbers."""
_SHARED_SIZE = 4096
"""Largest number of elements of a draw that all worlds share."""

Rows = list[torch.Tensor]
"""Row of one world of a draw, for each dimension that may be the worlds'; or the shared draw."""
StepDraws = dict[str, list[Rows]]
"""Draws of one world in a control step, by the part of the step that drew them."""


class Tape(TorchFunctionMode):
    """Sees each draw of torch in its thread while it is entered."""

    def __init__(self) -> None:
        super().__init__()
        self._tokens: list[Any] = []

    def __enter__(self) -> Self:
        """Begin to see draws."""
        self._tokens.append(TAPES.set((*TAPES.get(), self)))
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        """See draws no more."""
        super().__exit__(*error)  # type: ignore[arg-type]
        TAPES.reset(self._tokens.pop())

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Call a function of torch, and handle its result if it is a draw."""
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and (func in _DRAWN or func in _FILLED):
            return self._handle(func, result)
        return result

    def part(self, name: str, worlds: EnvIds) -> contextlib.AbstractContextManager[object]:
        """Return the context of a part of the step."""
        raise NotImplementedError

    def _handle(self, func: Callable[..., object], result: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError


class DrawRecorder(Tape):
    """Keeps the rows of some worlds of each draw in its thread while it is entered.

    Args:
        num_envs: number of worlds.
        coupled: names of parts that are `COUPLED`.
    """

    def __init__(self, num_envs: int, coupled: Iterable[str] = ()) -> None:
        super().__init__()
        self._num_envs = num_envs
        self._coupled = {COUPLED, *coupled}
        self.draws: dict[int, StepDraws] = {}
        """Draws of each recorded world since `begin`."""
        self.coupled: set[int] = set()
        """Worlds that a coupled part has concerned since `begin`."""
        self._part = ""
        self._places: dict[int, dict[int, int]] = {}
        """Row of each recorded world that the present part concerns, by the number of rows."""

    def begin(self, env_ids: Iterable[int]) -> None:
        """Record the draws of these worlds from now on."""
        self.draws = {i: {} for i in env_ids}
        self.coupled = set()
        self._places = {i: {self._num_envs: i} for i in self.draws}

    @contextlib.contextmanager
    def part(self, name: str, worlds: EnvIds) -> Iterator[None]:
        """Record the draws of a part of the step for the worlds that it concerns."""
        before = self._part, self._places
        ids = Worlds.of(worlds, self._num_envs).host_ids
        self._part = f"{self._part}/{name}" if self._part else name
        self._places = {}
        for i in before[1]:
            for place in np.flatnonzero(ids == i)[:1].tolist():
                if name in self._coupled:
                    self.coupled.add(i)
                else:
                    self._places[i] = {self._num_envs: i, len(ids): place}
        try:
            yield
        finally:
            self._part, self._places = before

    def _handle(self, func: Callable[..., object], result: torch.Tensor) -> torch.Tensor:
        for i, places in self._places.items():
            self.draws[i].setdefault(self._part, []).append(_rows_of(result, places))
        return result


class WholeDraw(NamedTuple):
    """Draw of all worlds, or of those that a part of the step concerns."""

    part: str
    env_ids: np.ndarray | None
    """Worlds that the part concerns, in the order of the drawn rows; None for all."""
    drawn: torch.Tensor


class WholeRecorder(Tape):
    """Keeps each draw in its thread while it is entered, except those of `COUPLED` parts.

    Args:
        num_envs: number of worlds.
    """

    def __init__(self, num_envs: int) -> None:
        super().__init__()
        self._num_envs = num_envs
        self.draws: list[WholeDraw] = []
        """Draws since `begin`."""
        self.coupled = np.zeros(num_envs, dtype=bool)
        """Worlds that a coupled part has concerned since `begin`, shape [num_envs]."""
        self._part: tuple[str, np.ndarray | None] | None = "", None

    def begin(self) -> None:
        """Begin a step."""
        self.draws = []
        self.coupled = np.zeros_like(self.coupled)

    @contextlib.contextmanager
    def part(self, name: str, worlds: EnvIds) -> Iterator[None]:
        """Record the draws of a part of the step with the worlds that it concerns."""
        before = self._part
        if before is not None:
            own = f"{before[0]}/{name}" if before[0] else name
            ids = Worlds.of(worlds, self._num_envs).host_ids
            self._part = None if name == COUPLED else (own, np.array(ids))
            self.coupled[ids] |= name == COUPLED
        try:
            yield
        finally:
            self._part = before

    def _handle(self, func: Callable[..., object], result: torch.Tensor) -> torch.Tensor:
        if self._part is not None:
            self.draws.append(WholeDraw(*self._part, result.detach().cpu().clone()))
        return result


def draws_of_world(draws: Sequence[WholeDraw], env_id: int, num_envs: int) -> StepDraws:
    """Return the draws of one world, as a `DrawRecorder` would have recorded them."""
    found: StepDraws = {}
    for part, env_ids, drawn in draws:
        places = {num_envs: env_id}
        if env_ids is not None:
            own = np.flatnonzero(env_ids == env_id)[:1].tolist()
            if not own:
                continue
            places[len(env_ids)] = own[0]
        found.setdefault(part, []).append(_rows_of(drawn, places))
    return found


def _rows_of(drawn: torch.Tensor, places: Mapping[int, int]) -> Rows:
    """Return copies of one world's rows of a draw, or of the whole draw if all worlds share it.

    Args:
        drawn: the draw.
        places: row of the world, by the number of rows.
    """
    rows = [
        drawn.narrow(dim, places[size], 1).detach().cpu().clone()
        for dim, size in enumerate(drawn.shape)
        if size in places
    ]
    if not rows and drawn.numel() <= _SHARED_SIZE:
        rows = [drawn.detach().cpu().clone()]
    return rows


class DrawReplay(Tape):
    """Gives recorded draws to an environment of one world, in its thread while it is entered."""

    def __init__(self) -> None:
        super().__init__()
        self._left: dict[str, Iterator[Rows]] | None = None
        self._part: str | None = ""
        """Part of the step; None while its draws are new ones."""
        self.unequal = ""
        """First draw of the step that was not recorded, as text; empty for none."""

    def give(self, draws: StepDraws | None) -> None:
        """Use these draws for the next step; None draws new numbers from now on."""
        self.unequal = ""
        self._left = None if draws is None else {n: iter(rows) for n, rows in draws.items()}

    @contextlib.contextmanager
    def part(self, name: str, worlds: EnvIds) -> Iterator[None]:
        """Use the draws of a part of the step."""
        before = self._part
        if before is not None:
            own = f"{before}/{name}" if before else name
            self._part = None if name == COUPLED else own
        try:
            yield
        finally:
            self._part = before

    def _handle(self, func: Callable[..., object], result: torch.Tensor) -> torch.Tensor:
        if self._left is None or self._part is None:
            return result
        for row in next(self._left.get(self._part, iter(())), []):
            if row.shape == result.shape:
                return result.copy_(row)
        name = getattr(func, "__name__", "numbers")
        self.unequal = self.unequal or (
            f"{self._part or 'a term'} draws {name} of shape {(*result.shape,)}, which the "
            "recorded world did not draw"
        )
        return result
