"""Assignment of variants to worlds."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike


def allocate_worlds(weights: Sequence[float], nworld: int) -> list[int]:
    """Distribute worlds by the method of largest remainders, in blocks.

    Args:
        weights: one for each variant, in any unit.
        nworld: the number of worlds.

    Returns:
        The variant of each world, ascending.

    Raises:
        ValueError: a weight is negative or not finite, or none is positive.
    """
    if not all(math.isfinite(w) and w >= 0 for w in weights):
        raise ValueError(f"Weights of variants must be finite and non-negative, got {weights}.")
    total = sum(weights)
    if not total > 0:
        raise ValueError(f"Weights of variants must have a positive sum, got {weights}.")
    # Rounding makes (1, 2, 1) and (0.1, 0.2, 0.1) the same.
    quotas = [round(weight / total * nworld, 9) for weight in weights]
    counts = [math.floor(quota) for quota in quotas]
    by_remainder = sorted(range(len(quotas)), key=lambda i: counts[i] - quotas[i])
    for i in by_remainder[: nworld - sum(counts)]:
        counts[i] += 1
    return np.repeat(np.arange(len(counts)), counts).tolist()


Assignment = Sequence[float] | np.ndarray | Callable[[int], Sequence[int]]
"""A tuple of a weight for each variant, an array of each world's variant, or a function of the
number of worlds that returns the latter."""


def assign_worlds(
    assignment: Assignment, what: str, num_variants: int, nworld: int, kind: str = "variant"
) -> np.ndarray:
    """Return the variant of each world, int64, shape [nworld].

    Args:
        assignment: see `Assignment`.
        what: the assignment in messages.
        num_variants: how many variants there are.
        nworld: the number of worlds.
        kind: what a variant is, in messages.

    Raises:
        ValueError: the indices are no integers, of another number, or out of range.
    """
    if callable(assignment):
        what = f"{what} returned"
        remedy = "return"
        indices = variant_ids(assignment(nworld), num_variants, what, what, remedy, kind)
    elif isinstance(assignment, np.ndarray):
        remedy = "give"
        indices = variant_ids(assignment, num_variants, f"{what} has", f"{what} is", remedy, kind)
        what = f"{what} has"
    else:
        return np.array(allocate_worlds(assignment, nworld), np.int64)
    if len(indices) != nworld:
        raise ValueError(
            f"{what} {len(indices)} indices but nworld={nworld}: {remedy} one per world."
        )
    return indices


def variant_ids(
    values: ArrayLike | torch.Tensor,
    num_variants: int,
    has: str,
    equals: str,
    remedy: str = "give",
    kind: str = "variant",
) -> np.ndarray:
    """Return checked variant indices, one for each world, as int64, shape [nworld].

    Args:
        values: integers in a list, an array or a tensor.
        num_variants: how many variants there are.
        has: what has the indices, and a verb before one of them.
        equals: the same before all of them.
        remedy: what to do: 'give' or 'return'.
        kind: what a variant is.

    Raises:
        ValueError: they are no integers, or out of range.
    """
    try:
        if isinstance(values, torch.Tensor):
            values = values.cpu()
        indices = np.asarray(values)
    except ValueError:  # rows of different lengths
        indices = np.empty(0, object)
    if not indices.size and indices.ndim == 1 and indices.dtype != object:
        return np.zeros(0, np.int64)
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise ValueError(f"{equals} {reprlib.repr(values)}: {remedy} integers, one for each world.")
    bad = indices[(indices < 0) | (indices >= num_variants)]
    if bad.size:
        raise ValueError(
            f"{has} {kind} index {bad[0]}, but there are {num_variants} {kind}s: "
            f"{remedy} indices in [0, {num_variants})."
        )
    return indices.astype(np.int64)
