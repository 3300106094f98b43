"""The door in front of each page."""

from __future__ import annotations

import http.client
import logging
import socket
import warnings
from pathlib import Path
from typing import Any

import pytest

import manyworlds
from manyworlds.viewer.browser.gate import Gate
from tests.browser import free_port
from tests.waiting import PATIENCE_S

viser = pytest.importorskip("viser", reason="needs the extra 'lab'")


@pytest.fixture(scope="module")
def page():
    """An empty page on all addresses: its port, its token, and its server."""
    from manyworlds.viewer.browser.server import new_server, page_url, stop_server

    server = new_server("0.0.0.0", free_port())
    address, _, token = page_url(server).partition("/?token=")
    yield int(address.rpartition(":")[2]), token, server
    stop_server(server)


@pytest.fixture(scope="module")
def local_page():
    """An empty page for this machine, that a proxy shows as well: its server and its port."""
    from manyworlds.viewer.browser.server import new_server, page_url, stop_server

    server = new_server("127.0.0.1", free_port(), web_origins=["https://hub.example.org/"])
    yield server, int(page_url(server).rpartition(":")[2])
    stop_server(server)


def exchange(port: int, request: bytes) -> bytes:
    """Send a request as it is, and return the answer; empty if the connection is refused."""
    with socket.create_connection(("127.0.0.1", port)) as peer:
        try:
            peer.sendall(request)
            return peer.recv(100_000)
        except ConnectionError:  # the other end has closed it, and not read all
            return b""


def ask(port: int, upgrade: bool, **headers: str) -> int:
    """Ask for a page or its WebSocket with these headers alone; return the status."""
    if upgrade:
        headers |= {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Protocol": f"viser-v{viser.__version__}",
        }
    lines = [f"{name}: {value}" for name, value in headers.items()]
    answer = exchange(port, "\r\n".join(["GET / HTTP/1.1", *lines, "", ""]).encode())
    return int(answer.split()[1])


def get(port: int, target: str = "/", **headers: str) -> tuple[int, dict[str, str], str]:
    """Request a page; return status, headers and content."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    connection.request("GET", target, headers=headers)
    answer = connection.getresponse()
    content = answer.read().decode()
    connection.close()
    return answer.status, dict(answer.getheaders()), content


def open_page(port: int, token: str = "", **headers: str):
    """Open the page's WebSocket, as viser's script does."""
    from websockets.sync.client import connect

    protocol = f"viser-v{viser.__version__}"
    headers |= {"Cookie": f"manyworlds_token_{port}={token}"} if token else {}
    return connect(
        f"ws://127.0.0.1:{port}",
        subprotocols=[protocol],
        additional_headers=headers,
        max_size=None,
        compression=None,
    )


def test_a_page_needs_its_token(page):
    """Ask without a token, with a wrong one, and with the right one: 403 but for the last."""
    port, token, _ = page
    for target in ("/", "/?token=wrong", "/index.html", "/../../etc/passwd"):
        status, _, content = get(port, target)
        assert status == 403 and content.count(".") <= 4 and "needs its token" in content
    status, headers, _ = get(port, f"//evil.example?token={token}&darkMode=")
    assert status == 303 and headers["Location"] == "/?darkMode="
    status, headers, _ = get(port, f"/?token={token}")
    cookie, *flags = headers["Set-Cookie"].split("; ")
    assert headers["Location"] == "/" and {"HttpOnly", "SameSite=Lax"} <= set(flags)
    status, _, content = get(port, Cookie=cookie)
    assert status == 200 and "<html" in content


def test_the_socket_of_a_page_needs_token_and_origin(page):
    """Open the page's WebSocket: with the token it works; a stranger's page gets 403."""
    from websockets.exceptions import InvalidStatus

    port, token, server = page
    server.gui.add_html("hello")
    own = f"http://127.0.0.1:{port}"
    for headers in ({}, {"Origin": own}):
        with open_page(port, token, **headers) as socket_:
            assert len(socket_.recv(timeout=PATIENCE_S)) > 100
    for token_, headers in (("", {}), ("wrong", {}), (token, {"Origin": "http://evil.example"})):
        with pytest.raises(InvalidStatus) as caught, open_page(port, token_, **headers):
            pass
        assert caught.value.response.status_code == 403


@pytest.mark.parametrize("upgrade", [False, True])
@pytest.mark.parametrize(
    ("host", "origin", "opens"),
    [
        ("127.0.0.1:{}", None, True),  # a program
        ("localhost:{}", "http://localhost:{}", True),
        ("[::1]:{}", "http://[::1]:{}", True),
        ("localhost:9000", "http://localhost:9000", True),  # a forwarded port
        ("localhost", "http://localhost", True),
        ("hub.example.org", "https://hub.example.org", True),  # named
        ("127.0.0.1:{}", "https://hub.example.org", True),
        ("hub.example.org", None, True),
        ("127.0.0.1:{}", "http://localhost:{}", False),
        ("localhost:{}", "http://localhost:9000", False),
        ("localhost:{}", "http://localhost", False),
        ("127.0.0.1:{}", "http://evil.test:{}", False),
        ("127.0.0.1:{}", "http://hub.example.org", False),
        ("127.0.0.1:{}", "null", False),
        ("127.0.0.1:{}", "", False),
        ("127.0.0.1:{}", "ftp://127.0.0.1:{}", False),
        ("evil.test:{}", "http://evil.test:{}", False),  # a name that points to this machine now
        ("evil.test:{}", None, False),
        ("localhost.evil.test", None, False),
        ("evil.test@localhost:{}", None, False),
        ("localhost:{}/evil.test", None, False),
        ("0.0.0.0:{}", None, False),
        ("192.168.1.2:{}", "http://192.168.1.2:{}", False),
        ("", None, False),
        (None, None, False),
    ],
)
def test_a_page_of_this_machine_refuses_other_sites(local_page, host, origin, opens, upgrade):
    """Ask under names of this machine and others, from own pages and others: 403 for the others."""
    server, port = local_page
    server.gui.add_html("hello")
    headers = {"Host": host, "Origin": origin}
    given = {name: value.format(port) for name, value in headers.items() if value is not None}
    assert ask(port, upgrade, **given) == ((101 if upgrade else 200) if opens else 403)


@pytest.mark.parametrize("upgrade", [False, True])
def test_the_port_of_viser_answers_the_door_alone(local_page, page, upgrade):
    """Ask viser's own port as a browser does, with a guess: 403, its sockets also by the door."""
    for server, port in (local_page, (page[2], 0)):
        own = f"127.0.0.1:{server.get_port()}"
        assert server.get_port() != port
        for more in ({}, {"Origin": f"http://{own}"}, {"X-Manyworlds-Door": "guess"}):
            assert ask(server.get_port(), upgrade, Host=own, **more) == 403
    port = local_page[1]
    wanted = 403
    if not upgrade:
        wanted = 200  # the door has the HTML itself
    assert ask(port, upgrade, **{"Host": "localhost", "X-Manyworlds-Door": "guess"}) == wanted


def test_sockets_that_are_not_there_yet_are_refused(local_page, capsys):
    """Ask for a server that a page of before had: 404, and viser says nothing in the terminal."""
    request = "GET /lab-drive HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\r\n"
    answer = exchange(local_page[1], request.encode())
    assert answer.split()[1] == b"404"
    assert not capsys.readouterr().out


def test_frames_of_other_sites_are_refused(local_page, page):
    """Read the headers of all answers: only the page itself and named origins may frame it."""
    port, token, _ = page
    for target in ("/", f"/?token={token}"):
        assert get(port, target, Origin="http://evil.test")[1]["X-Frame-Options"] == "SAMEORIGIN"
    status, headers, _ = get(port, Cookie=f"manyworlds_token_{port}={token}")
    assert status == 200 and headers["Content-Security-Policy"] == "frame-ancestors 'self'"
    assert headers["X-Frame-Options"] == "SAMEORIGIN"
    status, headers, _ = get(local_page[1])
    policy = "frame-ancestors 'self' https://hub.example.org"
    assert status == 200 and headers["Content-Security-Policy"] == policy
    assert "X-Frame-Options" not in headers


_OPEN = """
([url, protocol]) => new Promise(resolve => {
    const socket = new WebSocket(url, protocol);
    socket.onmessage = () => resolve("read");
    socket.onclose = () => resolve("refused");
})
"""
_FRAME = """
url => new Promise(resolve => {
    const frame = document.createElement("iframe");
    frame.onload = resolve;
    frame.src = url;
    document.body.append(frame);
})
"""


def test_browsers_keep_other_sites_away(local_page, browser):
    """Open pages of other sites and ports in a browser: they get neither the socket nor a frame."""
    server, port = local_page
    server.gui.add_html("<p>hello</p>")
    url, protocol = f"http://127.0.0.1:{port}", f"viser-v{viser.__version__}"
    browser.goto(url)
    browser.get_by_text("hello").first.wait_for()
    assert browser.evaluate(_OPEN, [f"ws://127.0.0.1:{port}", protocol]) == "read"
    for site in ("http://evil.test:1234", "http://localhost:1234", "http://127.0.0.1:1234"):
        browser.route(f"{site}/", lambda route: route.fulfill(body="<html><body></body></html>"))
        browser.goto(f"{site}/")
        for own_port in (port, server.get_port()):
            for name in ("127.0.0.1", "localhost"):
                assert browser.evaluate(_OPEN, [f"ws://{name}:{own_port}", protocol]) == "refused"
        browser.evaluate(_FRAME, url)
        assert browser.frames[-1].url.startswith("chrome-error://")


def test_all_pages_are_behind_a_door():
    """Search the package for servers of viser: one function makes them, with a door."""
    package = Path(manyworlds.__file__).parent
    makers = [path for path in package.rglob("*.py") if "ViserServer(" in path.read_text("utf-8")]
    assert [path.name for path in makers] == ["server.py"]


def test_a_server_that_cannot_be_guarded_is_not_opened(monkeypatch):
    """Let viser open its port in another way: the page is an error, and the port is closed."""
    from manyworlds.viewer.browser.server import new_server

    opened = []
    known = viser.ViserServer

    def open_otherwise(host: str, *args: Any, **kwargs: Any) -> Any:
        opened.append(known(str(host).strip(), *args, **kwargs))
        return opened[-1]

    monkeypatch.setattr(viser, "ViserServer", open_otherwise)
    with pytest.raises(RuntimeError, match="cannot be guarded from other web sites .*: install"):
        new_server("127.0.0.1", free_port())
    assert not opened[0]._websock_server._server_thread.is_alive()


@pytest.mark.parametrize("origin", ["hub.example.org", "https://", "https://a/b", "ws://a", "*"])
def test_origins_that_are_none(origin):
    """Name what is no origin: an error says how to write one, and no port is left open."""
    from manyworlds.viewer.browser.server import new_server

    with pytest.raises(ValueError, match=r"is no origin of a page: give 'https://HOST'"):
        new_server("127.0.0.1", free_port(), web_origins=[origin])


@pytest.mark.parametrize(
    "request_",
    [
        b"rubbish\r\n\r\n",
        b"GET / HTTP/2\r\n\r\n",
        b"GET / HTTP/1.1\r\nno name\r\n\r\n",
        b"GET / HTTP/1.1\r\nOrigin: a\r\nOrigin: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nupgrade : websocket\r\n\r\n",
        b"\xff\xfe\r\n\r\n",
        b"GET /" + b"a" * 100_000,
    ],
)
def test_broken_requests_do_not_pass(page, request_):
    """Send what is no request: it is refused, and the page is served after that."""
    port, token, _ = page
    answer = exchange(port, request_)
    assert answer == b"" or b" 400 " in answer.splitlines()[0] or b" 403 " in answer.splitlines()[0]
    assert get(port, f"/?token={token}")[0] == 303


def test_further_requests_of_a_connection_do_not_pass(page):
    """Send two requests at once, of which one has the token: only that one is answered."""
    port, token, _ = page
    cookie = f"Cookie: manyworlds_token_{port}={token}\r\n".encode()
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as peer:
        peer.sendall(b"GET / HTTP/1.1\r\n" + cookie + b"\r\nGET /x HTTP/1.1\r\n\r\n")
        answer = b""
        while chunk := peer.recv(100_000):
            answer += chunk
    assert answer.startswith(b"HTTP/1.1 200") and b"HTTP/1.1 40" not in answer


def test_connections_are_few(monkeypatch):
    """Open more connections than allowed: further ones end at once, until others have ended."""
    monkeypatch.setattr("manyworlds.viewer.browser.gate._MOST_LINKS", 2)
    gate = Gate(1, "127.0.0.1", free_port(), "t" * 20)
    try:
        kept = [socket.create_connection(("127.0.0.1", gate.port), 10) for _ in range(2)]
        with socket.create_connection(("127.0.0.1", gate.port), 10) as peer:
            assert peer.recv(1) == b"" and gate.access.refused["too many"] == 1
        for peer in kept:
            peer.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert peer.recv(20).startswith(b"HTTP/1.1 403")
            peer.close()
    finally:
        gate.close()


@pytest.mark.parametrize("upgrade", ["", "websocket"])
def test_a_page_that_has_ended_is_told(upgrade, caplog):
    """Open a door behind which nothing listens: the browser and the log get a sentence."""
    gate = Gate(free_port(), "127.0.0.1", free_port(), "t" * 20)
    try:
        cookie = f"manyworlds_token_{gate.port}={gate.access.token}"
        with caplog.at_level(logging.ERROR):
            status, _, content = get(gate.port, Cookie=cookie, Upgrade=upgrade)
    finally:
        gate.close()
    assert status == 502 and "does not answer" in content and "start it again" in content
    assert str(gate.port) in caplog.text


def test_connections_that_ask_for_nothing_are_no_errors(caplog, capfd):
    """Connect to a page of this machine, and leave; send rubbish: no traceback is printed."""
    from manyworlds.viewer.browser.server import new_server, page_url, stop_server

    server = new_server("127.0.0.1", free_port())
    port = int(page_url(server).rpartition(":")[2])
    try:
        for content in (b"", b"rubbish\r\n\r\n", b"GET / HTTP/1.1\r\n"):
            with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as peer:
                peer.sendall(content)
                peer.shutdown(socket.SHUT_WR)
                peer.recv(1000)
        assert get(port)[0] == 200
    finally:
        stop_server(server)
    assert not caplog.records and "Traceback" not in capfd.readouterr().err


def test_the_next_port_is_taken():
    """Open a door on a port in use: it takes the next one; an address of others is an error."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        gate = Gate(1, "127.0.0.1", port, "t" * 20)
        assert gate.port > port and gate.access.token == "t" * 20
        gate.close()
    with pytest.raises(OSError, match="192.0.2.1"):
        Gate(1, "192.0.2.1", free_port())


def test_moving_the_camera_of_a_browser_that_left_is_quiet():
    """Send a view to a browser that has gone, as viser does: no warning of Python's."""
    import asyncio

    from viser._messages import SetCameraLookAtMessage
    from viser.infra._async_message_buffer import AsyncMessageBuffer

    from manyworlds.viewer.browser.server import new_server, stop_server

    loop = asyncio.new_event_loop()
    gone = AsyncMessageBuffer(loop, persistent_messages=False, done=True)
    with warnings.catch_warnings(record=True) as caught:
        stop_server(new_server("127.0.0.1", free_port()))
        gone.push(SetCameraLookAtMessage((0.0, 0.0, 0.0)))
    loop.close()
    assert gone._warned_push_after_done, "viser warned"
    assert not [str(warning.message) for warning in caught]
