"""Series: numbers of a lab after each of its steps, for plots."""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.lab.errors import near
from manyworlds.lab.loop.callbacks import Handle
from manyworlds.lab.play.quantities import Quantity, quantities

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

LONGEST_S = 60.0
"""Longest time that can be read [s]."""
_MOST_ROWS = 120_000  # of a series; half of them stay
_MOST_SERIES = 64
_IDLE_S = 60.0  # a series that nobody reads for so long ends
_SHOWN = ("timeline", "replay")
"""Names of steppers that show states of the past."""


class Series:
    """Values of one quantity over time, which ascends: where the world goes back, they are cut.

    Args:
        quantity: the quantity.
        width: number of its values.
    """

    def __init__(self, quantity: Quantity, width: int) -> None:
        self.quantity = quantity
        self.read_at = time.monotonic()
        """When it was read last [s]."""
        self._rows = np.empty((_MOST_ROWS, 1 + width))
        self._count = 0

    def add(self, moment: float, values: np.ndarray) -> None:
        """Add the values after a step."""
        rows = self._rows
        if self._count and moment <= rows[self._count - 1, 0]:
            self._count = int(np.searchsorted(rows[: self._count, 0], moment))
        if self._count == len(rows):
            self._count //= 2
            rows[: self._count] = rows[self._count :]
        rows[self._count, 0] = moment
        rows[self._count, 1:] = values
        self._count += 1

    def clear(self) -> None:
        """Forget all values."""
        self._count = 0

    def newest(self, seconds: float) -> tuple[np.ndarray, np.ndarray]:
        """Return times [s], shape [n], and values, shape [n, width], of the last seconds."""
        rows = self._rows[: self._count]
        start = 0
        if self._count:
            start = int(np.searchsorted(rows[:, 0], rows[-1, 0] - seconds))
        return rows[start:, 0].copy(), rows[start:, 1:].copy()


class StepSeries:
    """Series of a lab, each from the first time that it is read; without any, steps cost nothing.

    Args:
        lab: the lab.
    """

    def __init__(self, lab: LiveLab) -> None:
        self._lab: LiveLab = weakref.proxy(lab)  # a cycle would keep the lab's memory
        self._series: dict[str, Series] = {}
        self._listener: Handle | None = None  # while there is a series
        self._of: tuple[object, object] = (None, None)
        """Model and environment of the quantities."""
        lab.loop.on_reset(self._restart)

    def quantities(self) -> dict[str, Quantity]:
        """Return all quantities of the present world, by name."""
        found = quantities(self._lab.model) + self._rewards()
        return {quantity.name: quantity for quantity in found}

    def read(self, names: Sequence[str], seconds: float) -> dict[str, dict[str, np.ndarray]]:
        """Return times [s] and values of some quantities in the last seconds, by name.

        Raises:
            KeyError: the world has no such quantity.
            ValueError: too many quantities are read.
        """

        def go(model: mujoco.MjModel, data: mujoco.MjData) -> dict[str, dict[str, np.ndarray]]:
            self._bind(model)
            found = {}
            for name in names:
                series = self._series.get(name) or self._begin(name, data)
                series.read_at = time.monotonic()
                times, values = series.newest(seconds)
                found[name] = {"times": times, "values": values}
            return found

        return self._lab.loop.do(go, edits_model=False)

    def _rewards(self) -> list[Quantity]:
        """Return the reward of the task's environment and its terms, which control steps give."""
        stepper = self._lab.environment
        if stepper is None:
            return []
        total = lambda _: np.array([stepper.report.total])  # noqa: E731
        found = [Quantity("reward", "", total)]
        for term in stepper.report.rewards:
            read = lambda _, term=term: np.array([stepper.report.rewards[term]])  # noqa: E731
            found.append(Quantity(f"reward of {term}", "", read))
        return found

    def _begin(self, name: str, data: mujoco.MjData) -> Series:
        known = self.quantities()
        if name not in known:
            raise KeyError(f"There is no quantity '{name}' to plot{near(name, known)}")
        if len(self._series) == _MOST_SERIES:
            raise ValueError(
                f"Cannot keep '{name}': {_MOST_SERIES} quantities are kept after each step, the "
                f"most; those that nobody reads for {_IDLE_S:.0f} s end."
            )
        quantity = known[name]
        values = quantity.read(data)
        series = Series(quantity, len(values))
        if not self._is_past:
            series.add(data.time, values)
        if self._listener is None:
            self._listener = self._lab.loop.on_post_step(self._after_step)
        self._series[name] = series
        return series

    @property
    def _is_past(self) -> bool:
        return self._lab.loop.steppers.top.stepper.name in _SHOWN

    def _bind(self, model: mujoco.MjModel) -> None:
        """Go on with the quantities of the present world; series that it lacks end."""
        of = (model, self._lab.environment)
        if of == self._of:
            return
        self._of = of
        known = self.quantities()
        for name, series in list(self._series.items()):
            if name in known:
                series.quantity = known[name]
            else:
                del self._series[name]

    def _restart(self, model: mujoco.MjModel, data: mujoco.MjData, moved: bool) -> None:
        """Forget what was before a reset."""
        for series in self._series.values():
            series.clear()

    def _after_step(self, model: mujoco.MjModel, data: mujoco.MjData, moved: bool) -> None:
        if not moved or self._is_past:
            return
        self._bind(model)
        oldest = time.monotonic() - _IDLE_S
        for name, series in list(self._series.items()):
            if series.read_at < oldest:
                del self._series[name]
            else:
                series.add(data.time, series.quantity.read(data))
        if not self._series and self._listener is not None:
            self._listener.remove()
            self._listener = None


def thin_out(times: np.ndarray, values: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a series with fewer points, which keeps the extremes of what it joins.

    Args:
        times: times [s], shape [n].
        values: values, shape [n, width].
        most: largest number of points.

    Returns:
        The same if it has no more points; otherwise the least and the greatest value of each of
        `most // 2` pieces.
    """
    count = len(times)
    if count <= most:
        return times, values
    size = math.ceil(count / (most // 2))
    starts = np.arange(0, count, size)
    middles = np.minimum(starts + size // 2, count - 1)
    thin = np.empty((2 * len(starts), values.shape[1]))
    thin[0::2] = np.minimum.reduceat(values, starts, axis=0)
    thin[1::2] = np.maximum.reduceat(values, starts, axis=0)
    return times[np.stack([starts, middles], axis=1).ravel()], thin
