"""Handling of MuJoCo's warnings and of its log file.

Importing this module disables MuJoCo's log file: see `switch_off_log_file`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import mujoco

_LOG_FILE = "MUJOCO_LOG.TXT"


def switch_off_log_file() -> None:
    """Prevent MuJoCo from writing `MUJOCO_LOG.TXT` to the current folder.

    Its messages go to the terminal or to a handler in any case. A file that was set by
    `mujoco.MjLogConfig` beforehand is kept.
    """
    config = mujoco.MjLogConfig.get()
    if config.logfile == _LOG_FILE:
        config.logto_file = False
        config.set()


@contextlib.contextmanager
def mujoco_warnings(handler: Callable[[str], None]) -> Iterator[None]:
    """Pass MuJoCo's warnings to `handler` instead of the terminal."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(handler)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


# Here, since every module that compiles or steps a model imports this one.
switch_off_log_file()
