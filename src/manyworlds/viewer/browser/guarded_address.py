"""Address of a web server of viser that answers its door alone."""

from __future__ import annotations

import functools
import hmac
import importlib
import secrets
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection
    from websockets.http11 import Request, Response

    Answer = Awaitable[Response | None] | Response | None
    Answerer = Callable[[ServerConnection, Request], Answer]

_NAME = "X-Manyworlds-Door"


class GuardedAddress(str):
    """127.0.0.1, where a server answers only requests that have the secret of this address.

    viser passes its address on to websockets unchanged, and would pass nothing else on. Browsers
    and other programs that find the port get 403.
    """

    def __new__(cls) -> GuardedAddress:
        """Return a new address, with a secret of its own."""
        return super().__new__(cls, "127.0.0.1")

    def __init__(self) -> None:
        _use_guards()
        self._secret = secrets.token_urlsafe(32)
        self.is_guarded = False
        """True since a server that asks for the secret has been opened here."""

    @property
    def header(self) -> str:
        """Header of a request that is answered, as `Name: value`."""
        return f"{_NAME}: {self._secret}"

    def guard(self, process_request: Answerer | None) -> Answerer:
        """Return a function that answers a request as another one does, if it has the secret."""
        self.is_guarded = True

        def answer(connection: ServerConnection, request: Request) -> Answer:
            given = request.headers.get_all(_NAME)
            if len(given) != 1 or not hmac.compare_digest(
                given[0].encode(errors="replace"), self._secret.encode()
            ):
                text = "This port answers its page's own door only: open the printed address.\n"
                return connection.respond(HTTPStatus.FORBIDDEN, text)
            if process_request is None:
                return None
            return process_request(connection, request)

        return answer


@functools.cache
def _use_guards() -> None:
    """Let servers of websockets ask for the secret of their address, if it has one."""
    module: Any = importlib.import_module("websockets.asyncio.server")
    known: Any = module.serve

    class GuardedServe(known):
        def __init__(
            self,
            handler: Any,
            host: str | None = None,
            port: int | None = None,
            *,
            process_request: Any = None,
            **more: Any,
        ) -> None:
            if isinstance(host, GuardedAddress):
                process_request = host.guard(process_request)
            super().__init__(handler, host, port, process_request=process_request, **more)

    module.serve = GuardedServe
