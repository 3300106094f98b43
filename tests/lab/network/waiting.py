"""Free ports of servers, and waiting for what they do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from manyworlds.lab.network import LabServerCfg

ANY: dict[str, Any] = {f"{use}_port": 0 for use in LabServerCfg().ports}
"""Settings of a server on any free ports."""
WAIT_S = 60.0
_T = TypeVar("_T")


def until(condition: Callable[[], _T], what: str) -> _T:
    """Wait for a condition; return its value."""
    end = time.monotonic() + WAIT_S
    while not (value := condition()):
        assert time.monotonic() < end, what
        time.sleep(0.005)
    return value
