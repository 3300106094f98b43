"""Limit on the processor time of drawing beside other work."""

from __future__ import annotations

_PAID_AT_ONCE = 0.1
"""Part of the excess processor time that each rest between two frames compensates."""


class CpuShare:
    """Keeps repeated work to a share of the processor, by rests between the repetitions.

    An excess of one repetition is compensated in several rests, so that a page does not stop after
    it has sent the whole scene to a new browser.

    Args:
        share: processor time per wall time [s/s].
        shortest: shortest rest [s].
    """

    def __init__(self, share: float, shortest: float) -> None:
        self._share = share
        self._shortest = shortest
        self._owed = 0.0

    def rest(self, spent: float) -> float:
        """Return the time to rest [s] after a repetition that took so much processor time [s]."""
        self._owed += spent
        rest = max(self._shortest, _PAID_AT_ONCE * self._owed / self._share)
        self._owed = max(self._owed - rest * self._share, 0.0)
        return rest
