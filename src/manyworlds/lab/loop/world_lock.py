"""Lock that a thread holds while it reads or writes a world."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterator


class WorldLock:
    """Reentrant lock of a world; it tells who holds it and whether another thread waits."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._holder: int | None = None  # id of the thread that is in `hold`
        self._waiting: deque[None] = deque()  # one entry per thread that waits in `hold`

    @property
    def is_wanted(self) -> bool:
        """True while a thread waits in `hold`."""
        return bool(self._waiting)

    @property
    def is_mine(self) -> bool:
        """True if the calling thread is in `hold`."""
        return self._holder == threading.get_ident()

    @contextlib.contextmanager
    def hold(self, timeout: float = -1.0) -> Iterator[bool]:
        """Hold the lock: `with lock.hold(): ...`, also nested.

        Args:
            timeout: longest wait for the lock [s]; -1 waits until it is free.

        Yields:
            Whether the lock is held.
        """
        self._waiting.append(None)
        held = self._lock.acquire(timeout=timeout)
        self._waiting.pop()
        if not held:
            yield False
            return
        outer, self._holder = self._holder, threading.get_ident()
        try:
            yield True
        finally:
            self._holder = outer
            self._lock.release()
