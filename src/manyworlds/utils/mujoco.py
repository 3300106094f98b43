"""MuJoCo's own messages."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import mujoco


@contextlib.contextmanager
def mujoco_warnings(handler: Callable[[str], None]) -> Iterator[None]:
    """Give MuJoCo's warnings to `handler`; else they go to the terminal and MUJOCO_LOG.TXT."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(handler)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)
