"""Which world holds which variant."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np


def allocate_worlds(weights: Sequence[float], nworld: int) -> list[int]:
    """Share worlds out by the method of largest remainders, in blocks.

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


def assign_worlds(
    assignment: Sequence[float] | Callable[[int], Sequence[int]],
    entity: str,
    num_variants: int,
    nworld: int,
) -> np.ndarray:
    """Return the variant of each world, int64, shape [nworld].

    Args:
        assignment: weights, or a function of the number of worlds.
        entity: the entity's name, for messages.
        num_variants: how many variants there are.
        nworld: the number of worlds.

    Raises:
        ValueError: the function returned a list of another length, or an index out of range.
    """
    if not callable(assignment):
        return np.array(allocate_worlds(assignment, nworld), np.int64)
    indices = np.asarray(assignment(nworld))
    what = f"The assignment of entity '{entity}'"
    if indices.shape != (nworld,):
        raise ValueError(
            f"{what} returned {indices.size} indices but nworld={nworld}: return one per world."
        )
    if nworld and indices.dtype.kind not in "iu":
        raise ValueError(f"{what} returned {indices.dtype} values: return integers.")
    bad = indices[(indices < 0) | (indices >= num_variants)]
    if bad.size:
        raise ValueError(
            f"{what} returned variant index {bad[0]}, but there are {num_variants} variants: "
            f"return indices in [0, {num_variants})."
        )
    return indices.astype(np.int64)
