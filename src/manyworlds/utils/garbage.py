"""Pausing the garbage collector in latency-sensitive programs."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the garbage collector while modules load and long-lived objects are built.

    What exists at the end of the first such block is frozen: later collections skip it, so that
    they do not interrupt the program for tens of milliseconds. Only cycles wait for a collection;
    reference counting frees all other objects at once, as always.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():
            gc.freeze()
        if was_enabled:
            gc.enable()
