"""Pages that are open to other machines."""

from __future__ import annotations

import http.client
import logging
import socket
import warnings

import pytest

from manyworlds.viewer.browser.gate import Gate
from tests.browser import free_port

viser = pytest.importorskip("viser", reason="needs the extra 'lab'")


@pytest.fixture(scope="module")
def page():
    """An empty page on all addresses: its port, its token, and its server."""
    from manyworlds.viewer.browser.server import new_server, page_url, stop_server

    server = new_server("0.0.0.0", free_port())
    address, _, token = page_url(server).partition("/?token=")
    yield int(address.rpartition(":")[2]), token, server
    stop_server(server)


def get(port: int, target: str = "/", **headers: str) -> tuple[int, dict[str, str], str]:
    """Request a page; return status, headers and content."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
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
            assert len(socket_.recv(timeout=10)) > 100
    for token_, headers in (("", {}), ("wrong", {}), (token, {"Origin": "http://evil.example"})):
        with pytest.raises(InvalidStatus) as caught, open_page(port, token_, **headers):
            pass
        assert caught.value.response.status_code == 403


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
    with socket.create_connection(("127.0.0.1", port), timeout=10) as peer:
        peer.sendall(request_)
        answer = peer.recv(1000)
    assert answer == b"" or b" 400 " in answer.splitlines()[0] or b" 403 " in answer.splitlines()[0]
    assert get(port, f"/?token={token}")[0] == 303


def test_further_requests_of_a_connection_do_not_pass(page):
    """Send two requests at once, of which one has the token: only that one is answered."""
    port, token, _ = page
    cookie = f"Cookie: manyworlds_token_{port}={token}\r\n".encode()
    with socket.create_connection(("127.0.0.1", port), timeout=10) as peer:
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
    from manyworlds.viewer.browser.server import new_server, stop_server

    server = new_server("127.0.0.1", free_port())
    try:
        for content in (b"", b"rubbish\r\n\r\n", b"GET / HTTP/1.1\r\n"):
            with socket.create_connection(("127.0.0.1", server.get_port()), timeout=10) as peer:
                peer.sendall(content)
                peer.shutdown(socket.SHUT_WR)
                peer.recv(1000)
        assert get(server.get_port())[0] == 200
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
