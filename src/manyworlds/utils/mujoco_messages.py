"""Handling of MuJoCo's warnings and of its log file.

Importing this module disables MuJoCo's log file: see `switch_off_log_file`.
"""

from __future__ import annotations

import contextlib
import threading
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


class _Handlers:
    """Handlers of blocks that are nested, or that overlap in several threads.

    MuJoCo has one handler for all threads. The one of the block that began last gets the warnings;
    the one that was there before the first block is restored when the last one ends.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._before: Callable[[str], None] | None = None
        self._blocks: list[tuple[object, Callable[[str], None]]] = []

    def begin(self, block: object, handler: Callable[[str], None]) -> None:
        """Install the handler of a block."""
        with self._lock:
            if not self._blocks:
                self._before = mujoco.get_mju_user_warning()
            self._blocks.append((block, handler))
            mujoco.set_mju_user_warning(handler)

    def end(self, block: object) -> None:
        """Remove the handler of a block, and install that of the one that is still running."""
        with self._lock:
            self._blocks = [(other, handler) for other, handler in self._blocks if other != block]
            latest = self._blocks[-1][1] if self._blocks else self._before
            mujoco.set_mju_user_warning(latest)


_HANDLERS = _Handlers()


@contextlib.contextmanager
def mujoco_warnings(handler: Callable[[str], None]) -> Iterator[None]:
    """Pass MuJoCo's warnings to `handler` instead of the terminal, in all threads."""
    block = object()
    _HANDLERS.begin(block, handler)
    try:
        yield
    finally:
        _HANDLERS.end(block)


# Here, since every module that compiles or steps a model imports this one.
switch_off_log_file()
