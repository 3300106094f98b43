"""Handlers of MuJoCo's warnings."""

from __future__ import annotations

import mujoco
import pytest

from manyworlds.utils.mujoco_messages import MujocoWarnings


@pytest.mark.parametrize("first", [0, 1])
def test_blocks_that_overlap_leave_no_handler_behind(first: int) -> None:
    """Restore the handler from before, in whatever order blocks of several threads end."""
    lines: list[str] = []
    mujoco.set_mju_user_warning(lines.append)
    try:
        handlers = [lambda message: None, lambda message: None]
        blocks = [MujocoWarnings(handler) for handler in handlers]
        for block in blocks:
            block.__enter__()
        assert mujoco.get_mju_user_warning() is handlers[1]
        blocks[first].__exit__(None, None, None)
        assert mujoco.get_mju_user_warning() is handlers[1 - first]
        blocks[1 - first].__exit__(None, None, None)
        assert mujoco.get_mju_user_warning() == lines.append
    finally:
        mujoco.set_mju_user_warning(None)
