"""What is changed in viser's internals, all in one place; another viser is refused.

viser 1.1 has two gaps that a program cannot close from outside: an event that it sets in a wrong
thread, and a port on which it answers everybody.
"""

from __future__ import annotations

import asyncio
import functools
import hmac
import importlib
import secrets
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Literal

from manyworlds.utils.extras import require_extra

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


class AnyThreadEvent(asyncio.Event):
    """Event of an asyncio loop that other threads may set; only the loop wakes those that wait.

    Another thread must also ask the loop to call `set`: its own call only makes `is_set` true.
    """

    def __init__(self) -> None:
        super().__init__()
        self._early = False

    def set(self) -> None:
        """Make the event true; in the loop's thread, wake those that wait for it."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self._early = True
        else:
            super().set()

    def is_set(self) -> bool:
        """Return True from `set` to `clear`."""
        return self._early or super().is_set()

    def clear(self) -> None:
        """Make the event false."""
        self._early = False
        super().clear()

    async def wait(self) -> Literal[True]:
        """Wait until the event is true."""
        if self._early:
            return True
        return await super().wait()


@functools.cache
def change_viser() -> None:
    """Change viser's internals for all pages of this program, once.

    Raises:
        MissingExtraError: the extra 'lab' is not installed.
        RuntimeError: this viser has other internals.
    """
    version = require_extra("viser", "lab").__version__
    try:
        _use_any_thread_events()
        _use_guards()
    except (ImportError, AttributeError) as error:
        raise refusal(version) from error


def refusal(version: str) -> RuntimeError:
    """Return the error of a viser whose internals are not those that are changed here."""
    return RuntimeError(
        f"viser {version} has other internals than viser 1.1, whose port cannot be guarded from "
        "other web sites without them: install 'viser>=1.1,<1.2'."
    )


def _use_any_thread_events() -> None:
    """Let all pages of this program take messages from any thread.

    With each message that a program sends, viser 1.1 sets an event of its loop in the program's own
    thread, too. If the loop begins or ends to wait for it at that moment, `asyncio.Event` raises
    "deque mutated during iteration" in the program, whose page then stops.
    """
    infra: Any = importlib.import_module("viser.infra._infra")
    known: Any = infra.AsyncMessageBuffer

    class Buffer(known):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            if not isinstance(self.message_event, asyncio.Event):
                raise AttributeError("message_event is no asyncio.Event")
            self.message_event = AnyThreadEvent()

    infra.AsyncMessageBuffer = Buffer


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
