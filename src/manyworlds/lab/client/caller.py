"""Base of the verbs as methods."""

from __future__ import annotations

from typing import Any

Reply = dict[str, Any]
"""Reply of a verb: plain data, bytes and arrays by name."""


class VerbCaller:
    """Object that carries out verbs of a live world by name."""

    def call(self, verb: str, **fields: object) -> Reply:
        """Carry out a verb, and wait for its effect; see `LabFace.call`."""
        raise NotImplementedError
