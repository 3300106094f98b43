"""Bounds of model fields, to which drawn values keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import torch

from manyworlds.sim.fields.model_fields import FieldBounds
from manyworlds.validation.rules import refuse

_ROUNDING = 1e-6


@dataclass(frozen=True)
class Limits:
    """Bounds of the values of some elements in a model field."""

    field: str
    names: Sequence[str]
    """Names of the elements."""
    bounds: FieldBounds
    used: torch.Tensor
    """Mask of the elements whose values are used, shape [elements, 1]."""
    moves_upper: bool
    """Whether `cut` moves the upper of two ordered values, or else the lower."""

    def check(self, base: torch.Tensor, low: torch.Tensor, high: torch.Tensor, draw: str) -> None:
        """Refuse values that may be out of bounds; those that stay as compiled never are.

        Args:
            base: compiled values of each variant, shape [variants, elements, columns].
            low: smallest values that may be written, of the same shape.
            high: largest values.
            draw: description of the draw, for the message.

        Raises:
            ValueError: names an element, its range and the bounds.
        """
        bounds = self.bounds
        below = low < bounds.low
        if bounds.above_low:
            below |= high <= bounds.low
        outside = below | (high > bounds.high + _ROUNDING)
        outside &= ((low != base) | (high != base)) & self.used
        if outside.any():
            at = tuple(outside.nonzero()[0].tolist())
            element, column = at[1:]
            field = self.field
            if base.shape[-1] > 1:
                field += f"[{column}]"
            refuse(
                f"{field} of '{self.names[element]}' must be {bounds}, but {draw} "
                f"gives {low[at]:.4g} to {high[at]:.4g} (compiled: {base[at]:.4g}): give other "
                "ranges, or clamp=True to cut what is out of bounds."
            )
        if not bounds.ordered:
            return
        crossed = high[..., 0] > low[..., 1] + _ROUNDING
        crossed &= ((low != base) | (high != base)).any(dim=-1) & self.used[:, 0]
        if crossed.any():
            at = tuple(crossed.nonzero()[0].tolist())
            refuse(
                f"{self.field} of '{self.names[at[1]]}' must be {bounds}, but {draw} gives lower "
                f"values of up to {high[at][0]:.4g} and upper ones from {low[at][1]:.4g}: give a "
                "range for each column, {0: (lower, upper), 1: (lower, upper)}, that do not "
                "overlap, or clamp=True to move the upper values up to the lower ones."
            )

    def cut(self, values: torch.Tensor) -> torch.Tensor:
        """Return values that are within the bounds, shape [worlds, elements, columns]."""
        bounds = self.bounds
        least = bounds.low
        if bounds.above_low:
            least += mujoco.mjMINVAL
        values = values.clamp(min=least, max=bounds.high)
        if bounds.ordered:
            lower, upper = values.unbind(-1)
            if self.moves_upper:
                upper = torch.maximum(lower, upper)
            else:
                lower = torch.minimum(lower, upper)
            values = torch.stack([lower, upper], dim=-1)
        return values
