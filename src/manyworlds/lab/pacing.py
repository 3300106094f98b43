"""Keeping simulated time in step with the clock on the wall, and saying honestly how well."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event

SLOWEST, FASTEST = 0.05, 10.0
"""Bounds of the speed."""

_SPIN_S = 0.0005  # the clock of `Event.wait` is this coarse
_WINDOW_S = 1.0


@dataclass(frozen=True)
class Pace:
    """How simulated time goes."""

    speed: float
    """What was asked for: simulated seconds per second."""
    real_time_factor: float
    """What was achieved over the last second."""
    behind_s: float
    """How late the world is [s]."""


class Pacer:
    """Waits between steps so that simulated time passes at the speed asked for.

    Deadlines add up (each is the last one plus the step), so that errors of single waits do not.
    A world that falls behind catches up as long as it is at most `max_behind_s` late; what is
    beyond that is dropped.

    Args:
        max_behind_s: how late the world may be and still make up for it [s].
        clock: the clock on the wall [s].
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
        self._speed = speed if math.isinf(speed) and speed > 0 else _clamp(speed)
        self.restart()

    @property
    def pace(self) -> Pace:
        """How simulated time went over the last second."""
        history = list(self._history)
        elapsed = history[-1][0] - history[0][0] if len(history) > 1 else 0.0
        factor = (history[-1][1] - history[0][1]) / elapsed if elapsed > 0.0 else 0.0
        return Pace(self._speed, factor, max(0.0, self._behind))

    def restart(self) -> None:
        """Forget how late the world is: after a pause, or at another speed."""
        self._deadline = self._clock()
        self._history.clear()
        self._behind = 0.0

    def wait(self, timestep: float, stop: Event) -> None:
        """Wait until a step of `timestep` [s] has taken as long as it should, or `stop` is set."""
        self._simulated += timestep
        self._deadline += timestep / self._speed
        now = self._clock()
        self._behind = now - self._deadline
        if self._behind > self.max_behind_s or math.isinf(self._speed):
            self._deadline = now
        elif self._behind < -_SPIN_S:
            stop.wait(-self._behind - _SPIN_S)
        time.sleep(0)  # lets other threads have the interpreter, and the engine's lock
        while self._clock() < self._deadline and not stop.is_set():
            time.sleep(0)
        self._note(self._clock())

    def _note(self, now: float) -> None:
        self._history.append((now, self._simulated))
        while now - self._history[0][0] > _WINDOW_S:
            self._history.popleft()


def _clamp(speed: float) -> float:
    return min(max(speed, SLOWEST), FASTEST)
