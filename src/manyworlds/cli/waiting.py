"""Time for which commands show a world: the option `--seconds`."""

from __future__ import annotations

import math
import time

_HEARTBEAT_S = 0.2


def check_seconds(seconds: float | None) -> None:
    """Check a value of `--seconds`, before the world is built.

    Raises:
        ValueError: it is negative, or no number.
    """
    if seconds is not None and not seconds >= 0.0:
        raise ValueError(f"--seconds must not be negative, got {seconds:g}: give a time [s].")


def wait(seconds: float | None) -> None:
    """Wait for a time [s]; None waits for Ctrl-C."""
    until = math.inf
    if seconds is not None:
        until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(_HEARTBEAT_S)
