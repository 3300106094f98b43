"""Token and Origin: what decides who may open a web page or a WebSocket."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections import Counter
from collections.abc import Iterable
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import parse_qs, urlsplit

from manyworlds.utils.platforms import config_folder, read_private, write_private_once

if TYPE_CHECKING:
    from websockets.http11 import Request, Response

COOKIE = "manyworlds_token"
"""Beginning of the names of cookies that have a token; the port of the page ends them."""
_TOKEN_BYTES = 32
_SHORTEST = 16  # characters of a token


class Handshake(Protocol):
    """Connection of a WebSocket, sync or async, whose handshake can be answered."""

    def respond(self, status: HTTPStatus, text: str) -> Response:
        """Return an answer in plain text."""
        ...


class Headers(Protocol):
    """Headers of a request, whose names are compared without regard to case."""

    def get(self, key: str, /) -> str | None:
        """Return a header, or None."""
        ...


class WebAccess:
    """Decides who may open a page or a WebSocket.

    A browser says in `Origin` which page asks. Only pages of the same server, pages of the same
    name of the machine at a known port, and named origins may; programs have no Origin. Beyond
    loopback a token is needed as well: in the address, in a cookie, or as a bearer token.

    Args:
        token: secret that each request must have; empty for none.
        origins: further origins of pages that may ask, such as `https://lab.example.org`.
    """

    def __init__(self, token: str = "", origins: Iterable[str] = ()) -> None:
        self.token = token
        self.origins = {_plain_origin(origin) for origin in origins}
        self.ports: set[int] = set()
        """Ports of pages under the name of the machine that is asked."""
        self.refused: Counter[str] = Counter()
        """Number of refused requests by reason: `address`, `origin` or `token`."""

    def refusal(self, target: str, headers: Headers) -> str:
        """Return the reason why a request is refused, as a sentence; empty if it is not.

        Args:
            target: path and query of the request.
            headers: its headers.
        """
        try:
            urlsplit(target)
        except ValueError:
            self.refused["address"] += 1
            return "The address of this request cannot be read."
        origin = headers.get("Origin")
        if origin is not None and not self._knows(origin, headers.get("Host") or ""):
            self.refused["origin"] += 1
            return (
                f"Pages of '{origin[:80]}' may not talk to this server: name that origin in its "
                "settings if they should."
            )
        if self.token and not self.has_token(target, headers):
            self.refused["token"] += 1
            return (
                "This server needs its token: open the address that the program printed, which "
                "ends with '?token=...'."
            )
        return ""

    def refuse(self, socket: Handshake, request: Request) -> Response | None:
        """Return the answer to a WebSocket's handshake that is refused; None if it is not."""
        try:
            text = self.refusal(request.path, request.headers)
        except LookupError:  # a header that is there twice
            return socket.respond(HTTPStatus.BAD_REQUEST, "A header is there twice.\n")
        return socket.respond(HTTPStatus.FORBIDDEN, f"{text}\n") if text else None

    def has_token(self, target: str, headers: Headers) -> bool:
        """Return True if a request has the token, compared in constant time."""
        given = parse_qs(urlsplit(target).query).get("token", [])
        kind, _, bearer = (headers.get("Authorization") or "").partition(" ")
        given += [bearer.strip()] * (kind.lower() == "bearer")
        for cookie in (headers.get("Cookie") or "").split(";"):
            name, _, value = cookie.strip().partition("=")
            given += [value] * name.startswith(COOKIE)
        secret = self.token.encode()
        found = [hmac.compare_digest(text.encode(errors="replace"), secret) for text in given]
        return any(found)

    def _knows(self, origin: str, host: str) -> bool:
        if _plain_origin(origin) in self.origins:
            return True
        try:
            page, asked = urlsplit(origin), urlsplit(f"//{host}")
            port = page.port or {"http": 80, "https": 443}.get(page.scheme, 0)
        except ValueError:
            return False
        if not page.hostname or page.hostname != asked.hostname:
            return False
        # Without a token, a name that its owner lets point to this machine must not be enough.
        return (port in self.ports or page.netloc == host) and (
            bool(self.token) or is_local(page.hostname)
        )


def served_at(url: str, port: int) -> str:
    """Return the address of a page as text, which says whether another port was asked for."""
    in_use = "" if urlsplit(url).port == port else f" (port {port} is in use)"
    return f"{url}{in_use}"


def is_local(host: str) -> bool:
    """Return True for an address that other machines cannot reach: `localhost`, 127.0.0.1, ::1."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # the name of some machine
        return False


def token_file() -> Path:
    """Return the user's file of the token of pages and WebSockets that other machines may open."""
    return config_folder() / "token"


def read_token(path: Path) -> str:
    """Return the token of a file that only its owner can read; create it if there is none.

    Raises:
        ValueError: others can read the file, or it has no token.
    """
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    if write_private_once(path, f"{token}\n"):
        return token
    token = read_private(path, "the token").strip()
    if len(token) < _SHORTEST or not token.isascii() or not token.isprintable():
        raise ValueError(
            f"'{path}' has no token of at least {_SHORTEST} characters: delete it for a new one."
        )
    return token


def _plain_origin(origin: str) -> str:
    return origin.strip().rstrip("/").lower()
