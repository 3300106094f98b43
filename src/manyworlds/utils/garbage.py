"""Python's search for garbage, in programs that must answer fast."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def without_garbage_search() -> Iterator[None]:
    """Load modules, and build objects for the life of a program, without a search for garbage.

    Later searches leave out what exists at the end of the first such block, so that they do not
    interrupt the program for tens of milliseconds. Objects without references are freed at once, as
    ever; the search is for cycles.
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
