"""Server for programs as the lab sees it, for verbs and pages."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any, Protocol


class LabServer(Protocol):
    """A server for programs, such as `HubProcess`."""

    def describe(self) -> Mapping[str, object]:
        """Return ports, clients, counters and problems as plain data."""
        ...

    def release_driver(self, reason: str) -> None:
        """Let the client that drives observe from now on."""
        ...


class ServerView:
    """The server that serves a lab, if there is one."""

    def __init__(self) -> None:
        # A cycle of references would keep the lab's shared memory until it is collected.
        self._server: weakref.ref[LabServer] | None = None

    def show(self, server: LabServer) -> None:
        """Show a server in place of the one before."""
        self._server = weakref.ref(server)

    def describe(self) -> dict[str, object]:
        """Return what the server says about itself; empty if there is none."""
        server = self._present
        return {} if server is None else dict(server.describe())

    def release_driver(self, reason: str) -> bool:
        """Let the client that drives observe; return False if there is no server."""
        server = self._present
        if server is not None:
            server.release_driver(reason)
        return server is not None

    @property
    def problems(self) -> list[str]:
        """Sentences about what is wrong with the server."""
        problems: Any = self.describe().get("problems", ())
        return list(problems)

    @property
    def _present(self) -> LabServer | None:
        return None if self._server is None else self._server()
