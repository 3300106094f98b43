"""Spaces of observations and actions: those of gymnasium, with mjlab's constructors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium.vector.utils
import numpy as np
from gymnasium import spaces as gym

from manyworlds.compat.mjlab.facades.extended import Extended
from manyworlds.utils.declared import declared

__all__ = ["Box", "Dict", "Space", "batch_space"]


class Space(gym.Space[Any], metaclass=Extended):
    """Space of arrays of a shape and type."""

    extended = gym.Space
    dtype: Any = declared()

    def __init__(self, shape: tuple[int, ...] = (), dtype: str = "float32") -> None:
        super().__init__(shape, dtype)


class Box(gym.Box, metaclass=Extended):
    """Space of arrays with bounds."""

    extended = gym.Box
    dtype: Any = declared()
    low: Any = declared()
    high: Any = declared()

    def __init__(
        self,
        shape: tuple[int, ...] = (),
        dtype: str = "float32",
        low: Any = -np.inf,
        high: Any = np.inf,
    ) -> None:
        super().__init__(low, high, shape, np.dtype(dtype).type)


class Dict(gym.Dict, metaclass=Extended):
    """Space of named spaces, which has no shape or type of its own.

    Raises:
        ValueError: a shape or a type is given.
    """

    extended = gym.Dict
    dtype: Any = declared()

    def __init__(
        self,
        shape: tuple[int, ...] = (),
        dtype: str = "float32",
        spaces: Mapping[str, gym.Space[Any]] | None = None,
    ) -> None:
        if shape != () or dtype != "float32":
            raise ValueError(
                f"Dict has shape={shape} and dtype={dtype!r}: give these to the spaces in it."
            )
        super().__init__(dict(spaces or {}))


def batch_space(space: gym.Space[Any], batch_size: int) -> gym.Space[Any]:
    """Return the space of a batch of elements of a space."""
    return gymnasium.vector.utils.batch_space(space, batch_size)
