"""Distributions to draw values from, and operations that apply them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import torch

from manyworlds.utils.math import sample_gaussian, sample_log_uniform, sample_uniform
from manyworlds.utils.world_random import RandomStream
from manyworlds.validation.names import near_matches
from manyworlds.validation.rules import refuse

Pair: TypeAlias = "tuple[torch.Tensor, torch.Tensor]"  # quoted: torch is loaded at its first use
TAIL = 6.0
"""Standard deviations beyond which no normal number of float32 lies."""


class Draw(Protocol):
    """Function that draws for given worlds, as the methods of `RandomStream` do."""

    def __call__(
        self,
        random: RandomStream,
        first: torch.Tensor,
        second: torch.Tensor,
        shape: tuple[int, ...],
        env_ids: torch.Tensor,
        /,
    ) -> torch.Tensor:
        """Draw, shape [n, *shape]."""
        ...


def _accept(first: torch.Tensor, second: torch.Tensor) -> None:
    """Accept any parameters."""


@dataclass(frozen=True)
class Distribution:
    """A way to draw random values.

    Managers copy configurations with all that is in them: compare by `==`, not by `is`.
    """

    name: str
    """Label for messages."""
    sample: Callable[[torch.Tensor, torch.Tensor, tuple[int, ...], str], torch.Tensor]
    """Called with two parameters, a shape and a device. The parameters, each of that shape, are the
    lower and upper bound, or the mean and standard deviation of a Gaussian."""
    check: Callable[[torch.Tensor, torch.Tensor], None] = _accept
    """Called with the two parameters at build; raises ValueError if it cannot draw from them."""
    ends: Callable[[torch.Tensor, torch.Tensor], Pair] | None = None
    """Called with the two parameters, returns the smallest and the largest value that it draws.
    None if they are not known; what is then drawn beyond the bounds of a field is cut."""
    draw: Draw | None = None
    """Called with `env.random`, the two parameters, the shape for one world, and the ids of the
    worlds, returns a row for each of them. None calls `sample`, which draws for no world in
    particular, so that forks and resumed trainings of another size draw other numbers."""


@dataclass(frozen=True)
class Operation:
    """A way to apply random values to a model field.

    Managers copy configurations with all that is in them: compare by `==`, not by `is`.

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


def _check_finite(first: torch.Tensor, second: torch.Tensor) -> None:
    if not (torch.isfinite(first).all() and torch.isfinite(second).all()):
        raise ValueError("A range has a bound that is not finite: give two finite numbers.")


def _check_interval(low: torch.Tensor, high: torch.Tensor) -> None:
    _check_finite(low, high)
    if (low > high).any():
        pair = (low > high).flatten().nonzero()[0]
        refuse(
            f"A range has lower bound {low.flatten()[pair].item():g} above its upper bound "
            f"{high.flatten()[pair].item():g}: swap them."
        )


def _check_positive_interval(low: torch.Tensor, high: torch.Tensor) -> None:
    _check_interval(low, high)
    least = torch.minimum(low, high).min()
    if least <= 0:
        raise ValueError(f"A log_uniform range begins at {least:g}, but both bounds must be > 0.")


def _check_gaussian(mean: torch.Tensor, std: torch.Tensor) -> None:
    _check_finite(mean, std)
    if (std < 0).any():
        raise ValueError(
            f"A gaussian range is (mean, std), but std is {std.min():g}: it must be >= 0."
        )


def _interval(low: torch.Tensor, high: torch.Tensor) -> Pair:
    return low, high


def _gaussian_ends(mean: torch.Tensor, std: torch.Tensor) -> Pair:
    return mean - TAIL * std, mean + TAIL * std


UNIFORM = Distribution("uniform", sample_uniform, _check_interval, _interval, RandomStream.uniform)
LOG_UNIFORM = Distribution(
    "log_uniform",
    sample_log_uniform,
    _check_positive_interval,
    _interval,
    RandomStream.log_uniform,
)
GAUSSIAN = Distribution(
    "gaussian", sample_gaussian, _check_gaussian, _gaussian_ends, RandomStream.normal
)
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
