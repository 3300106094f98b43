"""Long-lived objects of programs are left out of later garbage collections."""

from __future__ import annotations

import subprocess
import sys

from tests.waiting import PATIENCE_S

_PROGRAM = """
import gc, weakref
from manyworlds.utils.garbage import gc_paused

class Cycle:
    def __init__(self):
        self.itself = self

with gc_paused():
    assert not gc.isenabled()
    kept = [Cycle() for _ in range(100)]
assert gc.isenabled()
frozen = gc.get_freeze_count()
assert frozen > 200, frozen
assert not any(item is kept[0] for item in gc.get_objects())
with gc_paused():  # such as a world that replaces another one
    later = Cycle()
assert gc.get_freeze_count() <= frozen
seen = weakref.ref(later)
del later
gc.collect()
assert seen() is None

gc.disable()
with gc_paused():
    pass
assert not gc.isenabled()
"""


def test_what_is_loaded_is_left_out_of_later_searches() -> None:
    """In a program of its own, because nothing thaws what is frozen for others only."""
    subprocess.run([sys.executable, "-c", _PROGRAM], check=True, timeout=PATIENCE_S)
