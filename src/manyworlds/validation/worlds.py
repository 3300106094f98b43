"""Validation of world ids and their conversion to one form."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import torch

EnvIds: TypeAlias = "Worlds | torch.Tensor | np.ndarray | Sequence[int] | slice | None"
"""Which worlds a call concerns: ids, a mask of shape (num_envs,), a slice, `Worlds`, or None for
all."""
F = TypeVar("F", bound=Callable[..., Any])

_ALL = slice(None)


class Worlds:
    """The worlds that a call concerns: all of them, or some in the given order.

    Public methods construct it once from their `env_ids`, which checks these, and pass it on to
    internal functions. Each form is computed on first use. Ids on a GPU are read, and then checked,
    only when the host needs them.

    `Worlds.masked` makes worlds whose number the host does not know: `take` then returns the rows
    of all worlds, and `put` writes under the mask, so that neither shapes nor operations depend on
    values. Code that uses only these, `sum`, `mean` and `mask`, and passes the worlds on to
    entities and random streams, never waits for the device: a CUDA graph can contain it.

    Args:
        env_ids: integer ids, a boolean mask of shape (num_envs,), a slice, or None for all.
        num_envs: the number of worlds.
        device: device of `ids`, `mask` and `rows`.

    Raises:
        ValueError: an id is out of range, a mask has the wrong length, or ids are not integers.
    """

    def __init__(
        self,
        env_ids: torch.Tensor | np.ndarray | Sequence[int] | slice | None,
        num_envs: int,
        device: torch.device | str = "cpu",
    ) -> None:
        self.num_envs = num_envs
        self.device = device
        if isinstance(env_ids, slice):
            env_ids = range(num_envs)[env_ids]
            if env_ids == range(num_envs):
                env_ids = None
        self.is_all = env_ids is None
        """True if None or a slice selects all worlds."""
        self.is_masked = False
        """True if only the device knows which worlds these are; see `masked`."""
        self._on_device: torch.Tensor | None = None
        if env_ids is None:
            return
        if not isinstance(env_ids, torch.Tensor):
            self.host_ids = _checked_ids(np.asarray(env_ids), num_envs)
        elif env_ids.device.type == "cpu":
            self.host_ids = _checked_ids(env_ids.detach().numpy(), num_envs)
        else:
            self._on_device = env_ids.detach()
            # Type and shape are known without a read.
            _checked_ids(torch.zeros(env_ids.shape, dtype=env_ids.dtype).numpy(), num_envs)

    @classmethod
    def of(cls, env_ids: EnvIds, num_envs: int, device: torch.device | str = "cpu") -> Worlds:
        """Return `env_ids` if they are `Worlds`, else construct `Worlds` from them."""
        if isinstance(env_ids, Worlds):
            return env_ids
        return cls(env_ids, num_envs, device)

    @classmethod
    def masked(cls, mask: torch.Tensor) -> Worlds:
        """Return the worlds of a mask, shape (num_envs,), of which code without reads knows no ids.

        Reads of `ids` and `host_ids`, and `len`, still work, and wait for the device.
        """
        worlds = cls(None, len(mask), mask.device)
        worlds.is_all = False
        worlds.is_masked = True
        worlds._on_device = mask.detach()
        return worlds

    def union(self, other: Worlds) -> Worlds:
        """Return these worlds and others, possibly repeated, without a read of the device."""
        if other is self or self.is_all:
            return self
        if other.is_all:
            return other
        if self.is_masked or other.is_masked:
            return Worlds.masked(self.mask | other.mask)
        if self._on_device is None and other._on_device is None:
            ids = np.concatenate([self.host_ids, other.host_ids])
        else:
            ids = torch.cat([self.ids, other.ids])
        return Worlds(ids, self.num_envs, self.device)

    def where(self, chosen: torch.Tensor) -> Worlds:
        """Return those of these worlds that are chosen.

        Args:
            chosen: a boolean for each row of `take`.
        """
        if self.is_masked:
            return Worlds.masked(self.mask & chosen)
        return Worlds(self.ids[chosen], self.num_envs, self.device)

    def without(self, other: Worlds) -> Worlds | None:
        """Return these worlds without others; None if none are left, as far as the host knows."""
        if other is self or other.is_all:
            return None
        if self.is_masked or other.is_masked:
            return Worlds.masked(self.mask & ~other.mask)
        left = np.setdiff1d(self.host_ids, other.host_ids)
        if not left.size:
            return None
        return Worlds(left, self.num_envs, self.device)

    def __bool__(self) -> bool:
        """Return whether there may be any worlds; the host does not read a mask on a GPU."""
        if self.is_masked or self.is_all:
            return True
        if self._on_device is None:
            return len(self.host_ids) > 0
        return len(self.ids) > 0

    def take(self, rows: torch.Tensor, dim: int = 0) -> torch.Tensor:
        """Return the rows of the worlds, shape (n, ...); all rows, as they are, for a mask.

        Args:
            rows: one row per world along `dim`.
            dim: the dimension of worlds.
        """
        if self.is_all or self.is_masked:
            return rows
        return rows.index_select(dim, self.ids)

    def put(self, target: torch.Tensor, value: torch.Tensor | float, dim: int = 0) -> None:
        """Write the rows of the worlds, in place; the other rows keep their bits.

        Args:
            target: one row per world along `dim`.
            value: a number, or rows as `take` returns them.
            dim: the dimension of worlds.
        """
        if self.is_masked:
            mask = self._mask_over(target, dim)
            if isinstance(value, torch.Tensor):
                torch.where(mask, value.to(target.dtype), target, out=target)
            else:
                target.masked_fill_(mask, value)
        elif self.is_all:
            if isinstance(value, torch.Tensor):
                target.copy_(value)
            else:
                target.fill_(value)
        elif isinstance(value, torch.Tensor):
            target[(_ALL,) * dim + (self.ids,)] = value.to(target.dtype)
        else:
            target.index_fill_(dim, self.ids, value)

    def mean(self, rows: torch.Tensor, dim: int = 0) -> torch.Tensor:
        """Return the mean of the rows of the worlds; NaN for no world."""
        if not self.is_masked:
            return self.take(rows, dim).mean(dim)
        return self.sum(rows, dim) / self.mask.sum()

    def sum(self, rows: torch.Tensor, dim: int = 0) -> torch.Tensor:
        """Return the sum of the rows of the worlds."""
        if not self.is_masked:
            return self.take(rows, dim).sum(dim)
        return torch.where(self._mask_over(rows, dim), rows, torch.zeros_like(rows)).sum(dim)

    def for_term(self, func: Callable[..., object]) -> Worlds | torch.Tensor | None:
        """Return the argument of a term for these worlds; see `takes_worlds`.

        Terms that know no other form get ids, for which the host waits, or None for all worlds.
        """
        while isinstance(func, functools.partial):
            func = func.func
        if not hasattr(func, "__code__"):
            func = type(func).__call__
        if getattr(func, "takes_worlds", False):
            return self
        code = getattr(func, "__code__", None)
        if code is not None and "env_mask" in code.co_varnames[: code.co_argcount]:
            return self.mask
        return self.ids_or_none

    def for_call(self, func: Callable[..., object]) -> Worlds | torch.Tensor | None:
        """Return the argument of a term that is called for some worlds; None if there are none.

        As `for_term`, but a term that takes ids gets those of all worlds, and is not called where
        a mask turns out to be empty.
        """
        given = self.for_term(func)
        if given is None:
            return self.ids
        if self.is_masked and given is not self and given is not self.mask and not len(self):
            return None
        return given

    def pick(self, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        """Return columns of the rows of the worlds, shape (n, len(columns), ...): a copy."""
        if self.is_all or self.is_masked:
            return rows[:, columns]
        return rows[self.ids[:, None], columns]

    def take_or_nan(self, rows: torch.Tensor) -> torch.Tensor:
        """Return `take` as floats, with NaN where a mask leaves worlds out, for statistics."""
        taken = self.take(rows)
        if self.is_masked:
            taken = torch.where(self._mask_over(rows, 0), taken.float(), torch.nan)
        return taken

    def _mask_over(self, rows: torch.Tensor, dim: int) -> torch.Tensor:
        """Return the mask in a shape that broadcasts to rows along `dim`."""
        return self.mask.view(-1, *[1] * (rows.ndim - 1 - dim))

    @property
    def num_rows(self) -> int:
        """Number of rows of `take`."""
        return self.num_envs if self.is_masked else len(self)

    def __len__(self) -> int:
        if self.is_all:
            return self.num_envs
        if self._on_device is None:
            return len(self.host_ids)
        return len(self.ids)

    @functools.cached_property
    def host_ids(self) -> np.ndarray:
        """Ids on the host, int64, shape (n,); reads a tensor on a GPU."""
        if self._on_device is None:
            return np.arange(self.num_envs)
        return _checked_ids(self._on_device.cpu().numpy(), self.num_envs)

    @functools.cached_property
    def ids(self) -> torch.Tensor:
        """Ids on the device, int64, shape (n,)."""
        if self.is_all:
            return torch.arange(self.num_envs, device=self.device)
        if self._on_device is None:
            return torch.from_numpy(self.host_ids).to(self.device, non_blocking=True)
        if self._on_device.dtype == torch.bool:
            return self._on_device.nonzero().squeeze(-1).to(self.device)
        return self._on_device.to(self.device, torch.int64)

    @functools.cached_property
    def mask(self) -> torch.Tensor:
        """Mask on the device, shape (num_envs,); computed without a read of the device."""
        if self._on_device is not None and self._on_device.dtype == torch.bool:
            return self._on_device.to(self.device)
        mask = torch.zeros(self.num_envs, dtype=torch.bool, device=self.device)
        mask[self.rows] = True
        return mask

    @functools.cached_property
    def rows(self) -> torch.Tensor | slice:
        """Row index on the device: a slice for all, or `ids`."""
        return _ALL if self.is_all else self.ids

    @functools.cached_property
    def host_rows(self) -> np.ndarray | slice:
        """Row index on the host: a slice for all, or `host_ids`."""
        return _ALL if self.is_all else self.host_ids

    @functools.cached_property
    def ids_or_none(self) -> torch.Tensor | None:
        """`ids`, or None for all: the argument of terms, entities and sensors."""
        return None if self.is_all else self.ids

    @functools.cached_property
    def host_ids_or_none(self) -> np.ndarray | None:
        """`host_ids`, or None for all: the argument of a `mujoco.batch.Batch`."""
        return None if self.is_all else self.host_ids

    @functools.cached_property
    def ascending(self) -> Worlds:
        """The same worlds, each once and in ascending order; reads a tensor on a GPU."""
        if self.is_all or self.is_masked:
            return self
        ids = self.host_ids
        if (ids[1:] > ids[:-1]).all():
            if len(ids) < self.num_envs:
                return self
        else:
            ids = np.unique(ids)
        if len(ids) == self.num_envs:
            ids = None
        return Worlds(ids, self.num_envs, self.device)


def _wrong_mask(shape: Sequence[int], num_envs: int) -> str:
    return (
        f"A mask over worlds must have shape ({num_envs},), got {tuple(shape)}: "
        "give one boolean per world."
    )


def _checked_ids(given: np.ndarray, num_envs: int) -> np.ndarray:
    """Return the world ids, int64, shape (n,), that a mask over worlds or a list of ids gives."""
    if given.dtype == bool:
        if given.shape != (num_envs,):
            raise ValueError(_wrong_mask(given.shape, num_envs))
        return np.flatnonzero(given)
    if given.size == 0:
        return np.zeros(0, np.int64)
    if given.dtype.kind not in "iu":
        raise ValueError(f"World ids must be integers, got {given.dtype}: use int64 ids or a mask.")
    if given.ndim != 1:
        raise ValueError(
            f"World ids must be one-dimensional, got shape {given.shape}: give a list such as "
            "[0, 2]."
        )
    for bad in (given.min(), given.max()):
        if not 0 <= bad < num_envs:
            raise ValueError(
                f"World id {bad} is out of range: there are {num_envs} worlds, "
                f"so ids must be in [0, {num_envs})."
            )
    return given.astype(np.int64)


def takes_worlds(func: F) -> F:
    """Mark a term, or its `__call__` or `reset`, whose argument `env_ids` may be `Worlds`.

    It then works with any form of worlds, also with a mask, and can be captured. Other terms are
    given ids, or a mask if the argument is called `env_mask`.
    """
    func.takes_worlds = True  # type: ignore[attr-defined]
    return func


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
    if ids is None:
        return slice(None)
    if isinstance(ids, slice):
        return ids
    if isinstance(ids, torch.Tensor):
        given = ids.detach().cpu().numpy()
    else:
        given = np.asarray(ids)
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
    env_ids: EnvIds = None,
    columns: slice | torch.Tensor | Sequence[int] = _ALL,
) -> None:
    """Write `value` to the outer product of worlds and columns of `target`, in place.

    Raises:
        ValueError: an id is out of range or not an integer, or the shape of `value` is wrong.
    """
    if env_ids is not None and not isinstance(env_ids, Worlds):
        env_ids = Worlds(env_ids, len(target), target.device)
    is_number = isinstance(value, int | float)
    try:
        if not is_number:
            value = torch.as_tensor(value, dtype=target.dtype, device=target.device)
        if env_ids is None or env_ids.is_all:
            target[:, columns] = value
        elif env_ids.is_masked:
            if not isinstance(columns, slice):
                columns = torch.as_tensor(columns, device=target.device)
            kept = target[:, columns]
            target[:, columns] = torch.where(env_ids._mask_over(kept, 0), value, kept)
        elif not isinstance(columns, slice):
            columns = torch.as_tensor(columns, device=target.device)
            target[env_ids.ids[:, None], columns] = value
        elif is_number and columns == _ALL:
            target.index_fill_(0, env_ids.ids, value)
        else:
            target[env_ids.ids, columns] = value
    except (RuntimeError, IndexError):
        if is_number:
            raise
        count = len(target) if env_ids is None else env_ids.num_rows
        expected = (count, *target[:, columns].shape[1:])
        raise ValueError(
            f"Values of shape {expected} were expected, got {tuple(np.shape(value))}: "
            "give one row per world and one column per element, or a shape that broadcasts to it."
        ) from None
