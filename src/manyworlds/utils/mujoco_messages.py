"""Handling of MuJoCo's warnings and of its log file.

Importing this module disables MuJoCo's log file: see `switch_off_log_file`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import ClassVar

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


class MujocoWarnings:
    """Context in which MuJoCo's warnings go to a handler instead of the terminal, in all threads.

    MuJoCo has one handler for all threads. Contexts may be nested, or overlap in several threads:
    the one that began last gets the warnings, and the handler that was there before the first one
    is restored when the last one ends.

    Args:
        handler: function that takes the text of a warning.
    """

    _lock: ClassVar = threading.Lock()
    _active: ClassVar[list[MujocoWarnings]] = []
    _before: ClassVar[Callable[[str], None] | None] = None

    def __init__(self, handler: Callable[[str], None]) -> None:
        self._handler = handler

    def __enter__(self) -> None:
        with MujocoWarnings._lock:
            if not MujocoWarnings._active:
                MujocoWarnings._before = mujoco.get_mju_user_warning()
            MujocoWarnings._active.append(self)
            mujoco.set_mju_user_warning(self._handler)

    def __exit__(self, *error: object) -> None:
        with MujocoWarnings._lock:
            MujocoWarnings._active.remove(self)
            if MujocoWarnings._active:
                mujoco.set_mju_user_warning(MujocoWarnings._active[-1]._handler)
            else:
                mujoco.set_mju_user_warning(MujocoWarnings._before)


# Here, since every module that compiles or steps a model imports this one.
switch_off_log_file()
