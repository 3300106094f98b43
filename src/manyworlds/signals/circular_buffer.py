"""A circular buffer with the most recent values of each world."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from manyworlds.utils.state import Stateful
from manyworlds.validation.worlds import EnvIds, Worlds


class CircularBuffer(Stateful):
    """The last `max_len` values of each row of a batch.

    A value is appended to all rows at once; each row may be reset separately. If a row has fewer
    values than requested, its oldest one is returned, as if its first value had filled the history.
    Appending and reading never wait for a GPU.
    """

    state_attributes = ("_data", "_newest", "_length")
    world_columns = ("_data",)
    shared_attributes = ("_newest",)

    def __init__(self, max_len: int, batch_size: int, device: torch.device | str) -> None:
        """Create an empty buffer; the first `append` allocates its memory.

        Raises:
            ValueError: `max_len` is less than 1.
        """
        if max_len < 1:
            raise ValueError(f"max_len must be >= 1, got {max_len}: keep at least one value.")
        self._device = device
        self._data: torch.Tensor | None = None  # [max_len, batch_size, ...]: appending is one copy
        with torch.inference_mode(False):
            # On the device, where a captured graph can move it.
            self._newest = torch.full((1,), -1, dtype=torch.long, device=device)
            self._length = torch.zeros(batch_size, dtype=torch.long, device=device)
            self._rows = torch.arange(batch_size, device=device)
            self._lags = torch.arange(max_len - 1, -1, -1, device=device)

    @property
    def batch_size(self) -> int:
        """Number of rows."""
        return len(self._rows)

    @property
    def device(self) -> str:
        """Device of the values."""
        return str(self._device)

    @property
    def max_length(self) -> int:
        """Maximum number of values per row."""
        return len(self._lags)

    @property
    def current_length(self) -> torch.Tensor:
        """Number of values in each row, at most `max_length`, shape [batch_size]."""
        return self._length.clone()

    @property
    def is_initialized(self) -> bool:
        """True after the first `append`."""
        return self._data is not None

    @property
    def buffer(self) -> torch.Tensor:
        """All values, oldest first, shape [batch_size, max_length, ...].

        Raises:
            RuntimeError: nothing has been appended yet.
        """
        return self._read(self._lags, self._rows[:, None])

    def append(self, data: torch.Tensor) -> None:
        """Append one value to every row, shape [batch_size, ...]; the oldest are overwritten.

        Raises:
            ValueError: the batch size or the shape of a value differs from earlier values.
        """
        if self._data is None:
            self._check(data, (self.batch_size, *data.shape[1:]))
            self._allocate(data.shape[1:], data.dtype)
        assert self._data is not None
        self._check(data, self._data.shape[1:])
        self._newest.add_(1).remainder_(self.max_length)
        self._data.index_copy_(0, self._newest, data.unsqueeze(0))
        self._length.add_(1).clamp_(max=self.max_length)

    def backfill(self, data: torch.Tensor, batch_ids: EnvIds) -> None:
        """Restart the history of some rows with one value, without appending to the others.

        Args:
            data: the values, shape [n, ...].
            batch_ids: the n rows.

        Raises:
            RuntimeError: nothing has been appended yet.
            ValueError: the number or shape of the values does not match the rows.
        """
        if self._data is None:
            raise RuntimeError("Cannot backfill an empty buffer: call append() first.")
        rows = Worlds.of(batch_ids, self.batch_size, self._device)
        self._check(data, (rows.num_rows, *self._data.shape[2:]))
        self._put(rows, data.to(self._data))
        rows.put(self._length, 1)

    def reset(self, batch_ids: EnvIds = None) -> None:
        """Clear the values of some rows, or of all; they read as zero until the next `append`."""
        rows = Worlds.of(batch_ids, self.batch_size, self._device)
        rows.put(self._length, 0)
        if self._data is not None:
            self._put(rows, 0.0)

    def __getitem__(self, key: torch.Tensor | int) -> torch.Tensor:
        """Return the value of each row `key` appends ago, shape [batch_size, ...]; 0 is the newest.

        Args:
            key: one lag for all rows, or a lag for each, shape [batch_size].

        Raises:
            RuntimeError: nothing has been appended yet.
            ValueError: the number of lags differs from the number of rows.
        """
        if isinstance(key, torch.Tensor) and key.shape not in ((), (self.batch_size,)):
            raise ValueError(
                f"Lags must be one number or have shape ({self.batch_size},), "
                f"got {tuple(key.shape)}."
            )
        return self._read(key, self._rows)

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Restore a state that `state_dict` returned."""
        data = state.get("_data")
        if data is None:
            self._data = None
        elif self._data is None and isinstance(data, torch.Tensor):
            self._allocate(data.shape[2:], data.dtype)
        super().load_state_dict(state)

    def _put(self, rows: Worlds, value: torch.Tensor | float) -> None:
        """Replace the newest values of some rows."""
        assert self._data is not None
        newest = self._data.index_select(0, self._newest)
        if isinstance(value, torch.Tensor):
            value = value.unsqueeze(0)
        rows.put(newest, value, dim=1)
        self._data.index_copy_(0, self._newest, newest)

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
