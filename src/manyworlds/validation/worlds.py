"""Validation of world ids and their conversion to one form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import torch

EnvIds: TypeAlias = "torch.Tensor | np.ndarray | Sequence[int] | slice | None"


def resolve_env_ids(env_ids: EnvIds, num_envs: int) -> np.ndarray | None:
    """Convert world ids to sorted unique int32 ids, shape (n,), or None for all worlds.

    Args:
        env_ids: integer ids, a boolean mask of shape (num_envs,), a slice, or None for all.
        num_envs: the number of worlds.

    Raises:
        ValueError: an id is out of range, a mask has the wrong length, or ids are not integers.
    """
    if env_ids is None:
        return None
    if isinstance(env_ids, slice):
        if env_ids == slice(None):
            return None
        ids = np.arange(num_envs)[env_ids]
    else:
        if isinstance(env_ids, torch.Tensor):
            env_ids = env_ids.detach().cpu().numpy()
        ids = _checked(env_ids, num_envs)
    if ids.dtype == bool:
        return None if ids.all() else np.flatnonzero(ids).astype(np.int32)
    if ids.size == 0:
        return np.zeros(0, np.int32)
    if ids.size > 1 and not (ids[1:] > ids[:-1]).all():
        ids = np.unique(ids)
    return None if ids.size == num_envs else ids.astype(np.int32)


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
        return ids
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
    """Convert world ids to an index of rows: a slice, a mask (num_envs,), or int64 ids (n,).

    Ids keep their order.

    Args:
        env_ids: integer ids, a boolean mask, a slice, or None for all.
        num_envs: the number of worlds.
        device: device of the index; None keeps a tensor on its device.

    Raises:
        ValueError: as `resolve_env_ids`; values on a GPU are not checked, to avoid waiting.
    """
    if env_ids is None or isinstance(env_ids, slice):
        return slice(None) if env_ids is None else env_ids
    if isinstance(env_ids, torch.Tensor):
        visible = env_ids.device.type == "cpu"
        shown = env_ids.detach() if visible else torch.zeros(env_ids.shape, dtype=env_ids.dtype)
        _checked(shown.numpy(), num_envs)
    else:
        _checked(env_ids, num_envs)
    rows = torch.as_tensor(env_ids, device=device)
    return rows if rows.dtype == torch.bool else rows.long()


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
