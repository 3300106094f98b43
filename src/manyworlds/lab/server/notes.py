"""Sentences for people about what happened."""

from __future__ import annotations

import threading
from collections import deque

_MOST = 100


class Notes(deque[str]):
    """The newest sentences, the newest last; older ones are dropped."""

    def __init__(self) -> None:
        super().__init__(maxlen=_MOST)
        self.total = 0
        """Number of sentences so far, with those that were dropped."""
        self._lock = threading.Lock()

    def append(self, text: str, /) -> None:
        """Add a sentence."""
        with self._lock:
            super().append(text)
            self.total += 1

    def since(self, total: int) -> tuple[list[str], int]:
        """Return the sentences that came after the first `total`, and how many there are now."""
        with self._lock:
            fresh = min(self.total - total, len(self))
            return list(self)[len(self) - fresh :], self.total
