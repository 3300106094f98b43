"""Host, Origin and token: what decides who may open a web page or a WebSocket."""

from __future__ import annotations

import hmac
import ipaddress
import re
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
_HOST = re.compile(r"[A-Za-z0-9._:\[\]-]+")  # names, addresses, ports
_DEFAULT_PORTS = {"http": 80, "https": 443}


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

    Without a token, `Host` must be a name of this machine alone (`localhost`, 127.0.0.1, ::1) at
    any port, which may be forwarded, or the host of a named origin: any other name may be one that
    its owner has pointed to this machine. With a token any name will do. A browser says in
    `Origin` which page asks: only pages of the same server, pages of the same name at a known
    port, and named origins may. Programs have no Origin.

    Args:
        token: secret that each request must have, in the address, in a cookie, or as a bearer
            token; empty for none.
        origins: further origins of pages that may ask, such as `https://lab.example.org` of a
            proxy.

    Raises:
        ValueError: an origin is no origin.
    """

    def __init__(self, token: str = "", origins: Iterable[str] = ()) -> None:
        self.token = token
        self.origins = {_check_origin(origin) for origin in origins}
        self.ports: set[int] = set()
        """Ports of pages under the name of the machine that is asked."""
        self.refused: Counter[str] = Counter()
        """Number of refused requests by reason: `address`, `host`, `origin` or `token`."""

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
        host = headers.get("Host") or ""
        if not self._knows_host(host):
            self.refused["host"] += 1
            return (
                f"This server is not known as '{host[:80]}': open it as localhost or 127.0.0.1, or "
                "name the origin of that address in its settings (--web-origin)."
            )
        origin = headers.get("Origin")
        if origin is not None and not self._knows_origin(origin, host):
            self.refused["origin"] += 1
            return (
                f"Pages of '{origin[:80]}' may not talk to this server: name that origin in its "
                "settings (--web-origin) if they should."
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
        if not text:
            return None
        return socket.respond(HTTPStatus.FORBIDDEN, f"{text}\n")

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

    def _knows_host(self, host: str) -> bool:
        if self.token:
            return True
        name = _split_host(host)[0]
        return is_local(name) or name in {urlsplit(origin).hostname for origin in self.origins}

    def _knows_origin(self, origin: str, host: str) -> bool:
        if _plain_origin(origin) in self.origins:
            return True
        scheme, _, address = _plain_origin(origin).partition("://")
        if scheme not in _DEFAULT_PORTS:
            return False
        default = _DEFAULT_PORTS[scheme]
        page_name, page_port = _split_host(address, default)
        name, port = _split_host(host, default)
        return bool(name) and page_name == name and page_port in {port, *self.ports}


def served_at(url: str, port: int) -> str:
    """Return the address of a page as text, which says whether another port was asked for."""
    if urlsplit(url).port == port:
        return url
    return f"{url} (port {port} is in use)"


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


def _check_origin(origin: str) -> str:
    plain = _plain_origin(origin)
    scheme, _, address = plain.partition("://")
    if scheme not in _DEFAULT_PORTS or not _split_host(address)[0]:
        raise ValueError(
            f"'{origin}' is no origin of a page: give 'https://HOST' or 'http://HOST:PORT'."
        )
    return plain


def _split_host(host: str, default: int = 0) -> tuple[str, int]:
    """Return name and port of a host as HTTP writes it; an empty name if it cannot be read."""
    if not _HOST.fullmatch(host):
        return "", 0
    try:
        parts = urlsplit(f"//{host}")
        return parts.hostname or "", parts.port or default
    except ValueError:
        return "", 0
