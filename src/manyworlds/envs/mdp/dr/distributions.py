"""Distributions to draw values from, and operations that apply them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from manyworlds.utils.math import sample_gaussian, sample_log_uniform, sample_uniform
from manyworlds.validation.names import near_matches


@dataclass(frozen=True)
class Distribution:
    """A way to draw random values."""

    name: str
    """Label for messages."""
    sample: Callable[[torch.Tensor, torch.Tensor, tuple[int, ...], str], torch.Tensor]
    """Called with two parameters, a shape and a device. The parameters, each of that shape, are the
    lower and upper bound, or the mean and standard deviation of a Gaussian."""


@dataclass(frozen=True)
class Operation:
    """A way to apply random values to a model field.

    `combine(base, initialize(base))`, with the columns that are drawn filled in between, gives the
    new values. All three tensors have shape [worlds, elements, columns of the field].
    """

    name: str
    """Label for messages."""
    initialize: Callable[[torch.Tensor], torch.Tensor]
    """Makes the random values from the base values: those of columns that are not drawn."""
    combine: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    """Makes the new values from base values and random values."""
    uses_defaults: bool
    """True takes the compiled values as base, so that repeated calls do not accumulate; False takes
    the present ones."""


UNIFORM = Distribution("uniform", sample_uniform)
LOG_UNIFORM = Distribution("log_uniform", sample_log_uniform)
GAUSSIAN = Distribution("gaussian", sample_gaussian)
DISTRIBUTIONS = {known.name: known for known in (UNIFORM, LOG_UNIFORM, GAUSSIAN)}

ABS = Operation("abs", lambda base: base.clone(), lambda base, random: random, uses_defaults=False)
SCALE = Operation(
    "scale",
    lambda base: torch.ones_like(base),
    lambda base, random: base * random,
    uses_defaults=True,
)
ADD = Operation(
    "add",
    lambda base: torch.zeros_like(base),
    lambda base, random: base + random,
    uses_defaults=True,
)
OPERATIONS = {known.name: known for known in (ABS, SCALE, ADD)}


def resolve_operation(op: Operation | str) -> Operation:
    """Return an operation by its name, or one that was given as such.

    Raises:
        ValueError: no operation has that name.
    """
    if isinstance(op, Operation):
        return op
    if op not in OPERATIONS:
        raise ValueError(
            f"Unknown operation '{op}': use one of {', '.join(OPERATIONS)}, or a dr.Operation."
            + near_matches(str(op), OPERATIONS)
        )
    return OPERATIONS[op]


def resolve_distribution(dist: Distribution | str) -> Distribution:
    """Return a distribution by its name, or one that was given as such.

    Raises:
        ValueError: no distribution has that name.
    """
    if isinstance(dist, Distribution):
        return dist
    if dist not in DISTRIBUTIONS:
        raise ValueError(
            f"Unknown distribution '{dist}': use one of {', '.join(DISTRIBUTIONS)}, or a "
            "dr.Distribution." + near_matches(str(dist), DISTRIBUTIONS)
        )
    return DISTRIBUTIONS[dist]


def check_bounds(distribution: Distribution, low: torch.Tensor, high: torch.Tensor) -> None:
    """Refuse bounds that a built-in distribution cannot draw from.

    Raises:
        ValueError: says which.
    """
    built_in = distribution in (GAUSSIAN, UNIFORM, LOG_UNIFORM)
    if built_in and not (torch.isfinite(low).all() and torch.isfinite(high).all()):
        raise ValueError("A range has a bound that is not finite: give two finite numbers.")
    if distribution is GAUSSIAN:
        if (high < 0).any():
            raise ValueError(
                f"A gaussian range is (mean, std), but std is {high.min():g}: it must be >= 0."
            )
    elif distribution in (UNIFORM, LOG_UNIFORM):
        if (low > high).any():
            pair = (low > high).flatten().nonzero()[0]
            raise ValueError(
                f"A range has lower bound {low.flatten()[pair].item():g} above its upper bound "
                f"{high.flatten()[pair].item():g}: swap them."
            )
        if distribution is LOG_UNIFORM and (low <= 0).any():
            raise ValueError(
                f"A log_uniform range begins at {low.min():g}, but both bounds must be > 0."
            )
