"""WebSocket of a page for inputs that are held: viser does not tell when a key goes up."""

from __future__ import annotations

import itertools
import json
import logging
import threading
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING

from manyworlds.lab.errors import LabEndedError
from manyworlds.lab.page.page_context import Answer
from manyworlds.utils.extras import require_extra
from manyworlds.utils.web_access import WebAccess

if TYPE_CHECKING:
    from websockets.http11 import Request, Response
    from websockets.sync.server import ServerConnection

_LOG = logging.getLogger(__name__)
_MOST_BYTES = 16 * 1024
_MOST_SOCKETS = 64


class DriveSocket:
    """Answers the messages of browsers, each in a thread of its own.

    Args:
        access: decides which pages may connect.
        answer: answers a message.
        left: called with the name of a browser whose connection has ended.
        host: address of this machine to listen on.
    """

    def __init__(
        self,
        access: WebAccess,
        answer: Answer,
        left: Callable[[str], None],
        host: str = "127.0.0.1",
    ) -> None:
        module = require_extra("websockets.sync.server", "lab")
        self._closed = require_extra("websockets.exceptions", "lab").ConnectionClosed
        self._access = access
        self._answer = answer
        self._left = left
        self._numbers = itertools.count(1)
        self._sockets: set[ServerConnection] = set()
        quiet = logging.Logger("manyworlds-drive", logging.CRITICAL)  # what strangers send
        self._server = module.serve(
            self._talk,
            host,
            0,
            process_request=self._admit,
            max_size=_MOST_BYTES,
            compression=None,
            server_header=None,
            logger=quiet,
        )
        self.port: int = self._server.socket.getsockname()[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="manyworlds-drive", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening, and end all connections."""
        self._server.shutdown()
        self._thread.join()
        for socket in list(self._sockets):
            socket.close()

    def _admit(self, socket: ServerConnection, request: Request) -> Response | None:
        if refused := self._access.refuse(socket, request):
            return refused
        if len(self._sockets) >= _MOST_SOCKETS:
            return socket.respond(HTTPStatus.SERVICE_UNAVAILABLE, "Too many browsers.\n")
        return None

    def _talk(self, socket: ServerConnection) -> None:
        browser = f"browser {next(self._numbers)}"
        self._sockets.add(socket)
        try:
            for message in socket:
                socket.send(self._reply(browser, message))
        except self._closed:
            pass
        finally:
            self._sockets.discard(socket)
            self._tell_left(browser)

    def _tell_left(self, browser: str) -> None:
        try:
            self._left(browser)
        except LabEndedError:
            pass
        except Exception:
            _LOG.exception("What %s drove could not be stopped.", browser)

    def _reply(self, browser: str, message: str | bytes) -> str:
        try:
            content = json.loads(message)
            if not isinstance(content, dict):
                raise ValueError("A message is a map.")
            return json.dumps(self._answer(browser, content))
        except (ValueError, KeyError, RuntimeError) as error:
            text = str(error.args[0] if error.args else error)
        except Exception as error:
            _LOG.exception("A message of a browser failed.")
            text = f"{type(error).__name__}: {error}"
        return json.dumps({"error": text})
