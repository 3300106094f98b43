"""Waiting for what other threads and processes do, however busy the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE_S = 300.0
"""Longest wait for what must come: who else uses the machine decides how long it takes."""
_T = TypeVar("_T")


def least_cpu_s(call: Callable[[], object], wanted: float) -> float:
    """Return the least processor time of up to 20 calls [s]; no further one if it is as wanted.

    Other programs, and what is loaded at first, make single calls slow.
    """
    least = float("inf")
    for _ in range(20):
        start = time.process_time()
        call()
        least = min(least, time.process_time() - start)
        if least < wanted:
            break
    return least


def until(
    condition: Callable[[], _T], what: str, between: Callable[[], object] = lambda: None
) -> _T:
    """Wait for a condition; return its value.

    Args:
        condition: returns something true at the end.
        what: what is not so if it takes too long.
        between: called between two tries.
    """
    end = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        assert time.monotonic() < end, what
        between()
        time.sleep(0.005)
    return value
