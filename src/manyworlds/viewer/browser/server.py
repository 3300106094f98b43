"""Start and stop of web servers of pages."""

from __future__ import annotations

import contextlib
import logging
import secrets
import socket
import warnings
import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import rich

from manyworlds.utils.extras import require_extra
from manyworlds.utils.web_access import WebAccess, is_local
from manyworlds.viewer.browser.gate import Gate
from manyworlds.viewer.browser.shell import Shell
from manyworlds.viewer.browser.viser_internals import GuardedAddress, change_viser, refusal

if TYPE_CHECKING:
    import viser

_GATES: weakref.WeakKeyDictionary[viser.ViserServer, Gate] = weakref.WeakKeyDictionary()
"""Doors of the servers, without which nobody can reach them."""


def new_server(
    host: str, port: int, token: str = "", web_origins: Sequence[str] = (), noun: str = "lab"
) -> viser.ViserServer:
    """Start a web server behind a door, without viser's output; see `Gate`.

    Beyond loopback, a page needs a token, which its address has.

    Args:
        host: address to listen on.
        port: first port to try; the next free one is taken.
        token: token of a page beyond loopback; a random one if empty.
        web_origins: further origins of pages that may talk to this one, and show it in a frame.
        noun: what serves the page, for its message at the end: `lab`, `training`.

    Raises:
        MissingExtraError: the extra 'lab' is not installed.
        RuntimeError: viser is of another version, whose internals are others.
        ValueError: the port is out of range, this machine does not have the address, or an origin
            is no origin.
    """
    module = require_extra("viser", "lab")
    change_viser()
    _check_address(host, port)
    if is_local(host):
        token = ""
    elif not token:
        token = secrets.token_urlsafe(32)
    logging.getLogger("websockets.server").addFilter(_no_handshakes)  # once, however often added
    # A browser may go while its camera is moved, which is no fault of the user's program.
    warnings.filterwarnings("ignore", r"Queued a \w+ on a closed connection")
    address = GuardedAddress()
    with _quiet():
        server: viser.ViserServer = module.ViserServer(
            address, 0, label="manyworlds", verbose=False
        )
    try:
        if not address.is_guarded:
            raise refusal(module.__version__)
        shell = Shell(noun)
        _GATES[server] = Gate(
            server.get_port(), host, port, token, web_origins, address.header, shell
        )
    except AttributeError as error:
        stop_server(server)
        raise refusal(module.__version__) from error
    except (OSError, RuntimeError, ValueError):
        stop_server(server)
        raise
    server.gui.configure_theme(show_logo=False, show_share_button=False)
    _begin(server)
    return server


def entitle(server: viser.ViserServer, title: str) -> None:
    """Give a page the name of what it shows, which its tab in the browser also has."""
    gate = _GATES.get(server)
    if gate is not None and gate.shell is not None:
        gate.shell.title = title
    server.gui.set_panel_label(title)


def clear(server: viser.ViserServer) -> None:
    """Remove everything from a page."""
    server.gui.reset()
    server.scene.reset()
    server.scene.remove_click_callback()
    _begin(server)


def _begin(server: viser.ViserServer) -> None:
    """Dock the panel and mark it; browsers hide the panel until the mark is there."""
    server.gui.main_panel.dock_right()
    server.gui.add_html("<i data-lab-page hidden></i>", order=-2.0)


def stop_server(server: viser.ViserServer) -> None:
    """Stop a server, as quietly as it was started."""
    gate = _GATES.pop(server, None)
    if gate is not None:
        gate.close()
    with _quiet():
        server.stop()


def _check_address(host: str, port: int) -> None:
    """Refuse an address for which viser would wait forever."""
    if not 0 < port < 65536:
        raise ValueError(f"The port of a page must be in [1, 65535], got {port}.")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, 0), family=family).close()
    except OSError as error:
        raise ValueError(
            f"Cannot serve a page on host {host}: {error.strerror or error}. Use 127.0.0.1, or an "
            "address of this machine."
        ) from None


def _no_handshakes(record: logging.LogRecord) -> bool:
    """Leave out connections that ask for nothing; viser does, but only after its first request."""
    return record.getMessage() != "opening handshake failed"


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress output through rich in all threads, because viser's own thread prints, too."""
    console = rich.get_console()
    before = console.quiet
    console.quiet = True
    try:
        yield
    finally:
        console.quiet = before


def page_url(server: viser.ViserServer) -> str:
    """Return the address of a server's page, with its token if it needs one."""
    gate = _GATES.get(server)
    host: str = server.get_host()
    if gate is not None:
        host = gate.host
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host) or host
    if ":" in host:
        host = f"[{host}]"
    if gate is None:
        return f"http://{host}:{server.get_port()}"
    token = ""
    if gate.access.token:
        token = f"/?token={gate.access.token}"
    return f"http://{host}:{gate.port}{token}"


def page_access(server: viser.ViserServer) -> tuple[str, WebAccess]:
    """Return the address for a further server of a page, and who may use that."""
    gate = _GATES.get(server)
    if gate is not None:
        return "127.0.0.1", gate.access
    access = WebAccess()
    access.ports.add(server.get_port())
    return server.get_host(), access


def route(server: viser.ViserServer, path: str, port: int) -> str:
    """Return the address of a further server of a page, for its scripts.

    Args:
        server: server of the page.
        path: path under which the page's own address leads there.
        port: port of the further server on this machine.

    Returns:
        The path; or `:PORT` where the page's server was not made by `new_server`.
    """
    gate = _GATES.get(server)
    if gate is None:
        return f":{port}"
    gate.routes[path] = port
    return path
