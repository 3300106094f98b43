"""Pacing of simulated time by the wall clock, and its measured accuracy."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event

SLOWEST = 0.05
"""Lower bound of the speed."""
FASTEST = 10.0
"""Upper bound of a finite speed."""

_SPIN_S = 0.0005  # resolution of `Event.wait` [s]
_WINDOW_S = 1.0


@dataclass(frozen=True)
class Pace:
    """Speed of simulated time."""

    speed: float
    """Requested speed, in simulated seconds per second."""
    real_time_factor: float
    """Achieved speed over the last second, in simulated seconds per second."""
    behind_s: float
    """Delay of the world behind the wall clock [s]."""


class Pacer:
    """Waits between steps so that simulated time passes at the requested speed.

    Each deadline is the previous deadline plus the step, so that errors of single waits do not add
    up. A world that falls behind catches up by at most `max_behind_s`; a larger delay is dropped.

    Args:
        max_behind_s: largest delay that is caught up [s].
        clock: function that returns the wall clock's time [s].
    """

    def __init__(
        self, max_behind_s: float = 0.1, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.max_behind_s = max_behind_s
        self._clock = clock
        self._speed = 1.0
        self._deadline = clock()
        self._history: deque[tuple[float, float]] = deque()
        self._simulated = 0.0
        self._behind = 0.0

    @property
    def speed(self) -> float:
        """Simulated seconds per second, within `SLOWEST` and `FASTEST`; infinity never waits."""
        return self._speed

    @speed.setter
    def speed(self, speed: float) -> None:
        if math.isnan(speed):
            raise ValueError("The speed must be a number, got nan.")
        if speed != math.inf:
            speed = min(max(speed, SLOWEST), FASTEST)
        self._speed = speed
        self.restart()

    @property
    def pace(self) -> Pace:
        """Speed of simulated time over the last second."""
        history = list(self._history)
        factor = 0.0
        if history:
            begin, simulated_before = history[0]
            end, simulated = history[-1]
            if end > begin:
                factor = (simulated - simulated_before) / (end - begin)
        return Pace(self._speed, factor, max(0.0, self._behind))

    def restart(self) -> None:
        """Clear the delay: after a pause, or at another speed."""
        self._deadline = self._clock()
        self._history.clear()
        self._behind = 0.0

    def wait(self, timestep: float, stop: Event) -> None:
        """Wait until a step of `timestep` [s] has taken its real time, or `stop` is set."""
        self._simulated += timestep
        self._deadline += timestep / self._speed
        now = self._clock()
        self._behind = now - self._deadline
        if self._behind > self.max_behind_s or math.isinf(self._speed):
            self._deadline = now
        elif self._behind < -_SPIN_S:
            stop.wait(-self._behind - _SPIN_S)
        time.sleep(0)  # lets other threads take the interpreter and the loop's lock
        while self._clock() < self._deadline and not stop.is_set():
            time.sleep(0)
        self._note(self._clock())

    def _note(self, now: float) -> None:
        self._history.append((now, self._simulated))
        while now - self._history[0][0] > _WINDOW_S:
            self._history.popleft()
