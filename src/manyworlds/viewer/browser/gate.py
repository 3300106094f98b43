"""Door in front of each page: it asks for Host, Origin and, beyond this machine, a token."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from urllib.parse import parse_qsl, urlencode, urlsplit

from manyworlds.utils.web_access import COOKIE, WebAccess
from manyworlds.viewer.browser.shell import NEWS, Shell

_MOST_HEAD = 32 * 1024  # bytes of a request's head
_HEAD_S = 10.0  # time for a request's head
_CHUNK = 256 * 1024
_TRIES = 1000  # ports
_MOST_LINKS = 256  # connections at the same time
_JOIN_S = 10.0
_OWN = "/lab-"
"""Beginning of the paths of further servers."""
_NO_PAGE = (
    "The page does not answer at its port {} on this machine: it has ended, so start it again."
)
_LOG = logging.getLogger(__name__)


class Head(dict[str, str]):
    """Head of an HTTP request; names of headers are in lower case.

    Args:
        content: the bytes before the empty line.

    Raises:
        ValueError: it is no head of a request.
    """

    def __init__(self, content: bytes) -> None:
        super().__init__()
        first, *lines = content.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
        self.method, self.target, version = first.split(" ")
        if not version.startswith("HTTP/1."):
            raise ValueError(f"'{version[:20]}' is no version of HTTP/1")
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon or not name or name != name.strip():
                raise ValueError("a header has no name")
            name = name.lower()
            if name in self and name in ("host", "origin", "upgrade"):
                raise ValueError(f"two headers are '{name}'")
            self[name] = value.strip()

    def get(self, key: str, default: str | None = None, /) -> str | None:  # type: ignore[override]
        """Return a header, or the default."""
        return super().get(key.lower(), default)

    @property
    def is_upgrade(self) -> bool:
        """True if it asks for a WebSocket."""
        return (self.get("upgrade") or "").lower() == "websocket"


class Gate:
    """Listens where a page is open, and passes on what `WebAccess` admits.

    viser checks neither Host nor Origin, has no token, and no hook for them: it answers this alone
    (see `GuardedAddress`). The token in the address becomes a cookie, which the page's WebSocket
    sends as well. Pages of other origins cannot show this one in a frame.

    Args:
        target: port of the page on 127.0.0.1.
        host: address to listen on.
        port: first port to try; the next free one is taken.
        token: the token; empty for none, if other machines cannot reach the address.
        origins: further origins of pages that may talk to this one, and show it in a frame.
        pass_header: header that the page asks for, as `Name: value`; empty for none.
        shell: HTML around the page; without one, the page answers for itself.

    Raises:
        OSError: no port of the address is free.
        ValueError: an origin is no origin.
    """

    def __init__(
        self,
        target: int,
        host: str,
        port: int,
        token: str = "",
        origins: Iterable[str] = (),
        pass_header: str = "",
        shell: Shell | None = None,
    ) -> None:
        self.access = WebAccess(token, origins)
        self.host = host
        self.port = port
        self.routes: dict[str, int] = {}
        """Ports on 127.0.0.1 of further servers, by the path of their WebSockets."""
        self.shell = shell
        self._target = target
        self._pass_header = pass_header
        ancestors = " ".join(["'self'", *sorted(self.access.origins)])
        self._headers = {"Content-Security-Policy": f"frame-ancestors {ancestors}"}
        if not self.access.origins:  # browsers that do not know the header above
            self._headers["X-Frame-Options"] = "SAMEORIGIN"
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._error: OSError | None = None
        self._links: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="manyworlds-gate", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Stop listening, and end all connections."""
        with contextlib.suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_JOIN_S)

    def _run(self) -> None:
        """Run the loop of the server until it stops."""
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._ready.set()
            self._loop.close()

    async def _serve(self) -> None:
        for port in range(self.port, min(self.port + _TRIES, 65536)):
            try:
                server = await asyncio.start_server(
                    self._connected, self.host, port, limit=_MOST_HEAD
                )
                break
            except OSError as error:
                self._error = error
        else:
            return
        self._error = None
        self.port = server.sockets[0].getsockname()[1]
        self.access.ports.add(self.port)
        self._ready.set()
        await self._stop.wait()
        server.close()
        links = [*self._links]
        for link in links:
            link.cancel()
        await asyncio.gather(*links, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle a connection, unless there are too many."""
        if len(self._links) >= _MOST_LINKS:
            self.access.refused["too many"] += 1
            writer.close()
            return
        link = self._loop.create_task(self._handle(reader, writer))
        self._links.add(link)
        link.add_done_callback(self._links.discard)

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEAD_S):
                content = await reader.readuntil(b"\r\n\r\n")
            await self._answer(content, reader, writer)
        except (TimeoutError, OSError, EOFError, asyncio.LimitOverrunError):
            pass  # the browser left, or is none
        finally:
            await _close(writer)

    async def _answer(
        self, content: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            head = Head(content)
        except ValueError as error:
            await _reply(writer, HTTPStatus.BAD_REQUEST, f"The request cannot be read: {error}.")
            return
        text = self.access.refusal(head.target, head)
        if text:
            await _reply(writer, HTTPStatus.FORBIDDEN, text, self._headers)
            return
        address = ""
        if self.access.token:
            address = _address_without_token(head)
        if not address:
            if not await self._answer_itself(head, writer):
                await self._pass_on(head, content, reader, writer)
            return
        more = {
            "Location": address,
            # Not Strict: a link in a message would lose the cookie on the way.
            "Set-Cookie": (
                f"{COOKIE}_{self.port}={self.access.token}; HttpOnly; SameSite=Lax; Path=/"
            ),
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
        }
        await _reply(writer, HTTPStatus.SEE_OTHER, "", more)

    async def _answer_itself(self, head: Head, writer: asyncio.StreamWriter) -> bool:
        """Answer with the page's HTML or its state; return False if the page is to answer."""
        path = urlsplit(head.target).path
        if head.is_upgrade and path.startswith(_OWN) and path not in self.routes:
            # A script of the page before a restart: viser would print that it does not know it.
            await _reply(writer, HTTPStatus.NOT_FOUND, "The page has no such socket yet.")
            return True
        if self.shell is None or head.method != "GET" or head.is_upgrade:
            return False
        if path == "/":
            kind = "text/html"
            text = self.shell.page()
        elif path == NEWS:
            kind = "application/json"
            text = self.shell.news()
        else:
            return False
        more = {"Content-Type": f"{kind}; charset=utf-8", "Cache-Control": "no-store"}
        await _reply(writer, HTTPStatus.OK, text, {**self._headers, **more})
        return True

    async def _pass_on(
        self,
        head: Head,
        content: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Pass on one request, or a WebSocket; further requests of a connection are not read."""
        port = self.routes.get(urlsplit(head.target).path, self._target)
        try:
            answers, page = await asyncio.open_connection("127.0.0.1", port)
        except OSError as error:
            _LOG.error("Nothing answers behind the door at port %d: %s", self.port, error)
            await _reply(writer, HTTPStatus.BAD_GATEWAY, _NO_PAGE.format(port))
            return
        if port == self._target and self._pass_header:
            content = _insert_header(content, self._pass_header)
        page.write(content)
        ways = [asyncio.create_task(self._copy_answer(answers, writer))]
        if head.is_upgrade:
            ways.append(asyncio.create_task(_copy(reader, page)))
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            await _close(page)

    async def _copy_answer(
        self, answers: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Copy an answer of the page, with the headers of the door."""
        content = await answers.readuntil(b"\r\n\r\n")
        for name, value in self._headers.items():
            content = _insert_header(content, f"{name}: {value}")
        writer.write(content)
        await _copy(answers, writer)


def _insert_header(content: bytes, header: str) -> bytes:
    """Return the head of a request or an answer with a further header."""
    first, _, rest = content.partition(b"\r\n")
    return first + b"\r\n" + header.encode("latin-1") + b"\r\n" + rest


def _address_without_token(head: Head) -> str:
    """Return the address of a page without its token; empty if it has none."""
    parts = urlsplit(head.target)
    query = parse_qsl(parts.query, keep_blank_values=True)
    rest = [(key, value) for key, value in query if key != "token"]
    if head.is_upgrade or len(rest) == len(query):
        return ""
    # A path that begins with two slashes would name another machine.
    path = "/" + parts.path.lstrip("/")
    if rest:
        path += f"?{urlencode(rest)}"
    return path


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):  # either end may leave at any time
        while chunk := await source.read(_CHUNK):
            target.write(chunk)
            await target.drain()


async def _reply(
    writer: asyncio.StreamWriter,
    status: HTTPStatus,
    text: str,
    headers: Mapping[str, str] | None = None,
) -> None:
    content = b""
    if text:
        content = f"{text}\n".encode()
    all_headers = {"Content-Type": "text/plain; charset=utf-8", **(headers or {})}
    lines = [f"HTTP/1.1 {status.value} {status.phrase}", "Connection: close"]
    lines += [f"Content-Length: {len(content)}"]
    lines += [f"{name}: {value}" for name, value in all_headers.items()]
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + content)
    await writer.drain()


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
