"""Warnings of MuJoCo, and its log file.

Importing this module switches off MuJoCo's log file: see `switch_off_log_file`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import mujoco

_LOG_FILE = "MUJOCO_LOG.TXT"


def switch_off_log_file() -> None:
    """Keep MuJoCo from writing `MUJOCO_LOG.TXT` into whatever folder the process runs in.

    What it would write there goes to the terminal or to a handler in any case. A file that was
    named by `mujoco.MjLogConfig` beforehand is kept.
    """
    config = mujoco.MjLogConfig.get()
    if config.logfile == _LOG_FILE:
        config.logto_file = False
        config.set()


@contextlib.contextmanager
def mujoco_warnings(handler: Callable[[str], None]) -> Iterator[None]:
    """Give MuJoCo's warnings to `handler`; else they go to the terminal."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(handler)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


# Here, since every module that compiles or steps a model imports this one.
switch_off_log_file()
