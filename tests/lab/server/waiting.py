"""Free ports of servers, and waiting for what they do."""

from __future__ import annotations

from typing import Any

from manyworlds.lab.server import LabServerCfg
from tests.waiting import PATIENCE_S as WAIT_S
from tests.waiting import until

__all__ = ["ANY", "WAIT_S", "until"]

ANY: dict[str, Any] = {f"{use}_port": 0 for use in LabServerCfg().ports}
"""Settings of a server on any free ports."""
