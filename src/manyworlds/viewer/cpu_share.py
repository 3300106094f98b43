"""Limits on the processor time of drawing beside other work."""

from __future__ import annotations

_PAID_AT_ONCE = 0.1
"""Part of the processor time owed that each rest between two pictures makes up for."""


class CpuShare:
    """Keeps work that comes in turns to a share of the processor, by rests between the turns.

    What one turn takes too much is made up for in several rests, so that the page does not stand
    still after the whole scene was sent to a browser that connected.

    Args:
        share: processor time per time [s/s].
        shortest: the shortest rest [s].
    """

    def __init__(self, share: float, shortest: float) -> None:
        self._share, self._shortest = share, shortest
        self._owed = 0.0

    def rest(self, spent: float) -> float:
        """Return the time to rest [s] after a turn that took so much processor time [s]."""
        self._owed += spent
        rest = max(self._shortest, _PAID_AT_ONCE * self._owed / self._share)
        self._owed = max(self._owed - rest * self._share, 0.0)
        return rest
