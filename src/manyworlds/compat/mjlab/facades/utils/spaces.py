"""Spaces of observations and actions as plain data: shape, type and bounds.

Environments have gymnasium's spaces, which are instances of these classes, too.
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

import gymnasium
import gymnasium.vector.utils

__all__ = ["Box", "Dict", "Space", "batch_space"]


@dataclass
class Space(abc.ABC):  # noqa: B024
    """Space of arrays of one shape and type."""

    shape: tuple[int, ...] = ()
    dtype: Literal["float32", "int32", "int64", "uint8"] = "float32"


@dataclass
class Box(Space):
    """Space of arrays whose elements lie between two bounds."""

    low: float | tuple[float, ...] = -math.inf
    """Lower bound of all elements, or of each along the last axis."""
    high: float | tuple[float, ...] = math.inf
    """Upper bound of all elements, or of each along the last axis."""


@dataclass
class Dict(Space):
    """Space of dictionaries with one space for each key."""

    spaces: dict[str, Space] = field(default_factory=dict)


Space.register(gymnasium.Space)
Box.register(gymnasium.spaces.Box)
Dict.register(gymnasium.spaces.Dict)

_S = TypeVar("_S")


def batch_space(space: _S, batch_size: int) -> _S:
    """Return the space of batches: a first axis is added, in a dictionary to all its spaces.

    Bounds do not change: they hold for each member of the batch. A space of gymnasium becomes one
    of gymnasium.

    Raises:
        TypeError: it is no space.
    """
    if isinstance(space, gymnasium.Space):
        return gymnasium.vector.utils.batch_space(space, batch_size)
    if isinstance(space, Dict):
        spaces = {key: batch_space(one, batch_size) for key, one in space.spaces.items()}
        return replace(space, spaces=spaces)
    if isinstance(space, Space):
        return replace(space, shape=(batch_size, *space.shape))
    raise TypeError(f"{space!r} is no space: give a Box, a Dict, or a Space.")
