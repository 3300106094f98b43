"""The last values of each world."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from manyworlds.utils.state import Stateful
from manyworlds.validation.worlds import EnvIds, as_rows


class CircularBuffer(Stateful):
    """The last `max_len` values of each row of a batch.

    All rows are appended to at once, and each may be reset on its own. A row that has fewer values
    than are asked for answers with its oldest, as if its first value had filled its history.
    Appending and reading never wait for a GPU.
    """

    state_attributes = ("_data", "_newest", "_length")

    def __init__(self, max_len: int, batch_size: int, device: torch.device | str) -> None:
        """Make an empty buffer; its memory is allocated by the first `append`.

        Raises:
            ValueError: `max_len` is less than 1.
        """
        if max_len < 1:
            raise ValueError(f"max_len must be >= 1, got {max_len}: keep at least one value.")
        self._device = device
        self._data: torch.Tensor | None = None  # [max_len, batch_size, ...]: appending is one copy
        self._newest = -1
        with torch.inference_mode(False):
            self._length = torch.zeros(batch_size, dtype=torch.long, device=device)
            self._rows = torch.arange(batch_size, device=device)
            self._lags = torch.arange(max_len - 1, -1, -1, device=device)

    @property
    def batch_size(self) -> int:
        """Number of rows."""
        return len(self._rows)

    @property
    def device(self) -> str:
        """Where the values are."""
        return str(self._device)

    @property
    def max_length(self) -> int:
        """How many values of each row are kept."""
        return len(self._lags)

    @property
    def current_length(self) -> torch.Tensor:
        """How many values each row has, at most `max_length`, shape [batch_size]."""
        return self._length.clone()

    @property
    def is_initialized(self) -> bool:
        """Whether anything was ever appended."""
        return self._data is not None

    @property
    def buffer(self) -> torch.Tensor:
        """All values, the oldest first, shape [batch_size, max_length, ...].

        Raises:
            RuntimeError: nothing was appended yet.
        """
        return self._read(self._lags, self._rows[:, None])

    def append(self, data: torch.Tensor) -> None:
        """Add one value to every row, shape [batch_size, ...]; the oldest are forgotten.

        Raises:
            ValueError: the batch size, or the shape of a value, is another than before.
        """
        if self._data is None:
            self._check(data, (self.batch_size, *data.shape[1:]))
            self._allocate(data.shape[1:], data.dtype)
        assert self._data is not None
        self._check(data, self._data.shape[1:])
        self._newest = (self._newest + 1) % self.max_length
        self._data[self._newest] = data
        self._length.add_(1).clamp_(max=self.max_length)

    def backfill(self, data: torch.Tensor, batch_ids: torch.Tensor) -> None:
        """Let some rows begin anew with one value, without adding to the others.

        Args:
            data: the values, shape [number of ids, ...].
            batch_ids: the rows.

        Raises:
            RuntimeError: nothing was appended yet.
            ValueError: there is not one value of the right shape for each row.
        """
        if self._data is None:
            raise RuntimeError("Cannot backfill an empty buffer: call append() first.")
        count = self._rows[batch_ids].shape[0]
        self._check(data, (count, *self._data.shape[2:]))
        self._data[self._newest, batch_ids] = data.to(self._data)
        self._length[batch_ids] = 1

    def reset(self, batch_ids: EnvIds = None) -> None:
        """Forget the values of some rows, or of all; they read as zero until the next `append`."""
        rows = as_rows(batch_ids, self.batch_size, self._device)
        self._length[rows] = 0
        if self._data is not None:
            self._data[self._newest][rows] = 0

    def __getitem__(self, key: torch.Tensor | int) -> torch.Tensor:
        """Return the value of each row `key` appends ago, shape [batch_size, ...]; 0 is the newest.

        Args:
            key: one lag for all rows, or a lag for each, shape [batch_size].

        Raises:
            RuntimeError: nothing was appended yet.
            ValueError: there is another number of lags than of rows.
        """
        if isinstance(key, torch.Tensor) and key.shape not in ((), (self.batch_size,)):
            raise ValueError(
                f"Lags must be one number or have shape ({self.batch_size},), "
                f"got {tuple(key.shape)}."
            )
        return self._read(key, self._rows)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state that `state_dict` returned."""
        data = state.get("_data")
        if data is None:
            self._data = None
        elif self._data is None:
            self._allocate(data.shape[2:], data.dtype)
        super().load_state_dict(state)

    def _allocate(self, shape: Sequence[int], dtype: torch.dtype) -> None:
        with torch.inference_mode(False):
            self._data = torch.zeros(
                (self.max_length, self.batch_size, *shape), dtype=dtype, device=self._device
            )

    def _check(self, data: torch.Tensor, shape: Sequence[int]) -> None:
        if data.shape != torch.Size(shape):
            raise ValueError(
                f"The buffer takes data of shape {tuple(shape)}, got {(*data.shape,)}."
            )

    def _read(self, lags: torch.Tensor | int, rows: torch.Tensor) -> torch.Tensor:
        if self._data is None:
            raise RuntimeError("Cannot read an empty buffer: call append() first.")
        available = self._length[rows] - 1
        slots = (self._newest - available.clamp(max=lags).clamp_min(0)) % self.max_length
        return self._data[slots, rows]
