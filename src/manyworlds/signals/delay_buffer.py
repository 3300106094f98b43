"""A buffer that delays signals by a random lag in each world."""

from __future__ import annotations

from typing import Any

import torch

from manyworlds.signals.circular_buffer import CircularBuffer
from manyworlds.utils.state import Stateful
from manyworlds.utils.world_random import RandomStream, WorldRandom
from manyworlds.validation.worlds import EnvIds, Worlds


class DelayBuffer(Stateful):
    """Returns values that were appended a random number of steps ago.

    Each step calls `append` once and `compute` once. Lags are uniform over the integers in
    [min_lag, max_lag]; they are drawn at construction, at `reset`, and by `compute`. A lag larger
    than the number of values since the row's reset reads its oldest value.
    """

    state_attributes = ("_buffer", "_lags", "_step_count", "_phase", "_generator_state")
    shared_attributes = ("_generator_state",)

    def __init__(
        self,
        min_lag: int = 0,
        max_lag: int = 3,
        batch_size: int = 1,
        device: torch.device | str = "cpu",
        per_env: bool = True,
        hold_prob: float = 0.0,
        update_period: int = 0,
        per_env_phase: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        """Create an empty buffer.

        Args:
            min_lag: the smallest lag [steps].
            max_lag: the largest lag [steps].
            batch_size: number of rows, one per world.
            device: device of the values.
            per_env: draw a lag for each row, instead of one for all. A shared lag and its clock
                restart only when all rows are reset at once.
            hold_prob: probability to keep the lag when a new one is due; 1 keeps it until
                the next reset or `set_lags`.
            update_period: interval between draws of lags [steps]; 0 is every step.
            per_env_phase: start each row's period at a random step.
            generator: random number generator; None uses torch's default generator. Its state is
                saved with the buffer.

        Raises:
            ValueError: a value is out of its bounds.
        """
        if min_lag < 0:
            raise ValueError(f"min_lag must be >= 0, got {min_lag}.")
        if max_lag < min_lag:
            raise ValueError(f"max_lag ({max_lag}) must be >= min_lag ({min_lag}).")
        if not 0.0 <= hold_prob <= 1.0:
            raise ValueError(f"hold_prob must be in [0, 1], got {hold_prob}.")
        if update_period < 0:
            raise ValueError(f"update_period must be >= 0, got {update_period}.")
        self.min_lag = min_lag
        self.max_lag = max_lag
        self.hold_prob = hold_prob
        self.update_period = update_period
        self._shared = not per_env
        self._random_phase = per_env and per_env_phase and update_period > 0
        self._random: RandomStream | None = None
        self._generator = generator
        self._source: dict[str, Any] = {
            "generator": generator,
            "device": generator.device if generator else device,
        }
        self._buffer = CircularBuffer(max_lag + 1, batch_size, device)
        with torch.inference_mode(False):
            clocks = batch_size if per_env else 1
            self._lags = torch.zeros(batch_size, dtype=torch.long, device=device)
            self._step_count = torch.zeros(clocks, dtype=torch.long, device=device)
            self._phase = torch.zeros_like(self._step_count)
        self._begin_anew(Worlds(None, batch_size, device))

    def draw_from(self, random: WorldRandom, name: str) -> None:
        """Draw all lags anew, from now on from the stream of a name, and not from a generator."""
        self._random = random.stream(name, shared=self._shared)
        self._begin_anew(Worlds(None, len(self._lags), self._lags.device))

    @property
    def is_initialized(self) -> bool:
        """True after the first `append`."""
        return self._buffer.is_initialized

    @property
    def current_lags(self) -> torch.Tensor:
        """Lag of each row [steps], shape [batch_size]."""
        return self._lags.clone()

    def set_lags(self, lags: torch.Tensor, batch_ids: EnvIds = None) -> None:
        """Set lags, clamped to [min_lag, max_lag], until they are drawn again.

        Args:
            lags: lags [steps], one for all rows or shape [n].
            batch_ids: the n row ids; None for all rows.
        """
        rows = Worlds.of(batch_ids, len(self._lags), self._lags.device)
        lags = torch.as_tensor(lags, dtype=torch.long, device=self._lags.device)
        rows.put(self._lags, lags.clamp(self.min_lag, self.max_lag))

    def reset(self, batch_ids: EnvIds = None) -> None:
        """Clear the values of some rows, or of all, and draw their lags."""
        rows = Worlds.of(batch_ids, len(self._lags), self._lags.device)
        self._buffer.reset(rows)
        if rows.is_all or not self._shared:
            self._begin_anew(rows)

    def append(self, data: torch.Tensor) -> None:
        """Append one value to every row, shape [batch_size, ...]."""
        self._buffer.append(data)

    def backfill(self, data: torch.Tensor, batch_ids: EnvIds) -> None:
        """Restart some rows with values of shape [n, ...]; see `CircularBuffer.backfill`."""
        self._buffer.backfill(data, batch_ids)

    def compute(self) -> torch.Tensor:
        """Draw the lags that are due, and return the delayed values, shape [batch_size, ...].

        Raises:
            RuntimeError: nothing has been appended yet.
        """
        self._require_data()
        if self.max_lag > self.min_lag:
            due = self._unit() >= self.hold_prob
            if self.update_period:
                due &= (self._step_count + self._phase) % self.update_period == 0
            lags = self._integers(self.min_lag, self.max_lag)
            self._lags.copy_(torch.where(due, lags, self._lags))
            self._step_count += 1
        return self.peek()

    def peek(self) -> torch.Tensor:
        """Return the delayed values, shape [batch_size, ...], without drawing lags.

        Raises:
            RuntimeError: nothing has been appended yet.
        """
        self._require_data()
        return self._buffer[self._lags]

    def _require_data(self) -> None:
        if not self.is_initialized:
            raise RuntimeError("Buffer not initialized: call append() before reading.")

    def _begin_anew(self, rows: Worlds) -> None:
        """Draw the lags of some rows, or of all, and restart their clocks."""
        rows.put(self._lags, self._integers(self.min_lag, self.max_lag, rows))
        if self._shared:
            self._step_count.zero_()
        else:
            rows.put(self._step_count, 0)
        if self._random_phase:
            rows.put(self._phase, self._integers(0, self.update_period - 1, rows))

    def _integers(self, low: int, high: int, rows: Worlds | None = None) -> torch.Tensor:
        """Draw integers from [low, high], one for each clock of the rows; None for all."""
        if self._random is not None:
            return self._random.integers(low, high + 1, env_ids=rows)
        count = len(self._step_count)
        if rows is not None and not self._shared:
            count = rows.num_rows
        return torch.randint(low, high + 1, (count,), **self._source).to(self._lags.device)

    def _unit(self) -> torch.Tensor:
        """Draw from [0, 1), one number for each clock."""
        if self._random is not None:
            return self._random.uniform()
        return torch.rand(self._step_count.shape, **self._source).to(self._lags.device)

    @property
    def _generator_state(self) -> torch.Tensor | None:
        if self._generator is None:
            return None
        return self._generator.get_state()

    @_generator_state.setter
    def _generator_state(self, state: torch.Tensor | None) -> None:
        if self._generator and state is not None:
            self._generator.set_state(state)
