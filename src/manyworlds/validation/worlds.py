"""Validation of world ids and their conversion to one form."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import torch

_Given: TypeAlias = "torch.Tensor | np.ndarray | Sequence[int] | slice | None"
EnvIds: TypeAlias = "Worlds | _Given"

_ALL = slice(None)


class Worlds:
    """The worlds that a call concerns: all of them, or some in the given order.

    Public methods construct it from their `env_ids`, which checks these; internal functions take
    it. Each form is computed on first use. Values of ids on a GPU are read, and then checked, only
    when the host needs them.

    Args:
        env_ids: integer ids, a boolean mask of shape (num_envs,), a slice, or None for all.
        num_envs: the number of worlds.
        device: device of `ids`, `mask` and `rows`; None keeps a tensor on its device.

    Raises:
        ValueError: an id is out of range, a mask has the wrong length, or ids are not integers.
    """

    def __init__(
        self, env_ids: _Given, num_envs: int, device: torch.device | str | None = None
    ) -> None:
        self.num_envs = num_envs
        self._device = device
        self._given: slice | np.ndarray | torch.Tensor
        if env_ids is None:
            self._given = _ALL
        elif isinstance(env_ids, slice):
            span = range(num_envs)[env_ids]
            self._given = _ALL if span == range(num_envs) else np.array(span, np.int32)
        elif isinstance(env_ids, torch.Tensor):
            given = self._given = env_ids.detach()
            visible = given.device.type == "cpu"
            shown = given if visible else torch.zeros(given.shape, dtype=given.dtype)
            _checked(shown.numpy(), num_envs)
        else:
            self._given = _checked(env_ids, num_envs)

    @classmethod
    def of(cls, env_ids: EnvIds, num_envs: int, device: torch.device | str | None = None) -> Worlds:
        """Return `env_ids` if they are `Worlds`, else construct `Worlds` from them."""
        return env_ids if isinstance(env_ids, Worlds) else cls(env_ids, num_envs, device)

    @classmethod
    def union(cls, parts: Sequence[Worlds]) -> Worlds:
        """Concatenate worlds, possibly repeated, without reading the device."""
        for part in parts:
            if part.is_all or len(parts) == 1:
                return part
        first, given = parts[0], [part._given for part in parts]
        if all(isinstance(ids, np.ndarray) for ids in given):
            return cls(np.concatenate([part.host_ids for part in parts]), *first._space)
        return cls(torch.cat([part.ids for part in parts]), *first._space)

    @property
    def _space(self) -> tuple[int, torch.device | str | None]:
        return self.num_envs, self._device

    def __len__(self) -> int:
        return len(self.ids if isinstance(self._given, torch.Tensor) else self.host_ids)

    @property
    def is_all(self) -> bool:
        """True if None or a slice selects all worlds, which needs no read of the device."""
        return isinstance(self._given, slice)

    @functools.cached_property
    def host_ids(self) -> np.ndarray:
        """Ids on the host, int32, shape (n,); reads a tensor on a GPU."""
        given = self._given
        if isinstance(given, slice):
            return np.arange(self.num_envs, dtype=np.int32)
        if isinstance(given, torch.Tensor):
            given = _checked(given.cpu().numpy(), self.num_envs)
        return (np.flatnonzero(given) if given.dtype == bool else given).astype(np.int32)

    @functools.cached_property
    def ids(self) -> torch.Tensor:
        """Ids on the device, int64, shape (n,)."""
        rows = self.rows
        if isinstance(rows, slice):
            return torch.arange(self.num_envs, device=self._device)
        return rows.nonzero().squeeze(-1) if rows.dtype == torch.bool else rows

    @functools.cached_property
    def mask(self) -> torch.Tensor:
        """Mask on the device, shape (num_envs,); computed without reading the device."""
        rows = self.rows
        if isinstance(rows, torch.Tensor) and rows.dtype == torch.bool:
            return rows
        mask = torch.zeros(self.num_envs, dtype=torch.bool, device=self._device)
        mask[rows] = True
        return mask

    @functools.cached_property
    def rows(self) -> torch.Tensor | slice:
        """Row index on the device: a slice for all, a mask (num_envs,), or int64 ids (n,)."""
        given = self._given
        if isinstance(given, slice):
            return given
        rows = torch.as_tensor(given)
        if rows.dtype not in (torch.bool, torch.int64):
            rows = rows.long()
        return rows if self._device is None else rows.to(self._device, non_blocking=True)

    @property
    def host_rows(self) -> np.ndarray | slice:
        """Row index on the host: a slice for all, or int32 ids, shape (n,)."""
        return self._given if isinstance(self._given, slice) else self.host_ids

    @property
    def ids_or_none(self) -> torch.Tensor | None:
        """`ids`, shape (n,), or None for all: the argument of terms, entities and sensors."""
        return None if self.is_all else self.ids

    @property
    def host_ids_or_none(self) -> np.ndarray | None:
        """`host_ids`, shape (n,), or None for all: the argument of a `mujoco.batch.Batch`."""
        return None if self.is_all else self.host_ids

    @functools.cached_property
    def ascending(self) -> Worlds:
        """The same worlds, each once and in ascending order; reads a tensor on a GPU."""
        if isinstance(self._given, slice):
            return self
        ids = self.host_ids
        if ids.size > 1 and not (ids[1:] > ids[:-1]).all():
            ids = np.unique(ids)
        if ids.size == self.num_envs:
            return Worlds(None, *self._space)
        return self if ids is self.host_ids else Worlds(ids, *self._space)


def _checked(env_ids: np.ndarray | Sequence[int], num_envs: int) -> np.ndarray:
    """Check that a value is a mask over worlds or a list of world ids."""
    ids = np.asarray(env_ids)
    if ids.dtype == bool:
        if ids.shape != (num_envs,):
            raise ValueError(
                f"A mask over worlds must have shape ({num_envs},), got {ids.shape}: "
                "give one boolean per world."
            )
        return ids
    if ids.size == 0:
        return np.zeros(0, np.int32)
    if ids.dtype.kind not in "iu":
        raise ValueError(f"World ids must be integers, got {ids.dtype}: use int64 ids or a mask.")
    if ids.ndim != 1:
        raise ValueError(
            f"World ids must be one-dimensional, got shape {ids.shape}: give a list such as [0, 2]."
        )
    for bad in (ids.min(), ids.max()):
        if not 0 <= bad < num_envs:
            raise ValueError(
                f"World id {bad} is out of range: there are {num_envs} worlds, "
                f"so ids must be in [0, {num_envs})."
            )
    return ids


def as_rows(
    env_ids: EnvIds, num_envs: int, device: torch.device | str | None = None
) -> torch.Tensor | slice:
    """Convert world ids to an index of rows; see `Worlds`.

    Returns:
        A slice, a mask of shape (num_envs,), or int64 ids in their order, shape (n,).
    """
    return Worlds.of(env_ids, num_envs, device).rows


def as_index(
    ids: Sequence[int] | np.ndarray | slice | torch.Tensor | None, count: int | None = None
) -> slice | torch.Tensor:
    """Convert ids to the cheapest index: a slice if they are contiguous, else ids (n,).

    Args:
        ids: ids, or a boolean mask; None for all. A tensor that is not a range stays on its
            device.
        count: the number of elements; None skips the check of the ids.

    Raises:
        ValueError: an id is out of range or not an integer, or a mask has the wrong length.
    """
    if ids is None or isinstance(ids, slice):
        return slice(None) if ids is None else ids
    given = ids.detach().cpu().numpy() if isinstance(ids, torch.Tensor) else np.asarray(ids)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "biu"):
        raise ValueError(f"Ids must be a list of integers or a mask, got {ids!r}.")
    if given.dtype == bool:
        if count not in (None, len(given)):
            raise ValueError(f"A mask over {count} elements has {len(given)} values: give {count}.")
        given = np.flatnonzero(given)
        ids = torch.as_tensor(given, device=ids.device if isinstance(ids, torch.Tensor) else None)
    values = given.tolist()
    if not values:
        return slice(0, 0)
    if count is not None and (bad := [i for i in values if not 0 <= i < count]):
        raise ValueError(
            f"Id {bad[0]} is out of range: there are {count} elements, "
            f"so ids must be in [0, {count})."
        )
    if values[0] >= 0 and values == list(range(values[0], values[0] + len(values))):
        return slice(values[0], values[0] + len(values))
    return ids if isinstance(ids, torch.Tensor) else torch.tensor(values, dtype=torch.long)


def assign(
    target: torch.Tensor,
    value: torch.Tensor | np.ndarray | float,
    rows: EnvIds = None,
    columns: slice | torch.Tensor | Sequence[int] | None = None,
) -> None:
    """Write `value` to the outer product of rows (worlds) and columns of `target`, in place.

    Raises:
        ValueError: a row is out of range or not an integer, or the shape of `value` is wrong.
    """
    index = as_rows(rows, len(target), target.device)
    try:
        _assign(target, value, index, columns)
    except (RuntimeError, IndexError):
        if isinstance(value, int | float):
            raise
        worlds = len(torch.arange(len(target), device=target.device)[index])
        wanted = target[:, slice(None) if columns is None else columns].shape[1:]
        raise ValueError(
            f"Values of shape {(worlds, *wanted)} were expected, got {tuple(np.shape(value))}: "
            "give one row per world and one column per element, or a shape that broadcasts to it."
        ) from None


def _assign(
    target: torch.Tensor,
    value: torch.Tensor | np.ndarray | float,
    rows: torch.Tensor | slice,
    columns: slice | torch.Tensor | Sequence[int] | None,
) -> None:
    columns = slice(None) if columns is None else columns
    if not isinstance(value, int | float):
        value = torch.as_tensor(value, dtype=target.dtype, device=target.device)
    if isinstance(rows, slice):
        target[rows, columns] = value
        return
    if rows.dtype == torch.bool:
        rows = rows.nonzero().squeeze(-1)
    if (
        isinstance(columns, slice)
        and columns == slice(None)
        and not isinstance(value, torch.Tensor)
    ):
        target.index_fill_(0, rows, value)
        return
    if not isinstance(columns, slice):
        columns = torch.as_tensor(columns, device=target.device)
        rows = rows[:, None]
    target[rows, columns] = value
