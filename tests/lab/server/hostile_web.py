"""Hostile bytes for the WebSocket and for the door of a page, and programs that send them."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import struct
import threading
from collections import Counter

import msgpack
from websockets.sync.client import connect

from manyworlds.viewer.browser.gate import Gate
from tests.browser import free_port
from tests.lab.server.hostile import hostile_request, mutate

TOKEN = "t" * 43
"""Token of the door."""
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
WAIT_S = 30.0
_BATCH = 50
HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
"""Head of a request for a WebSocket, with a place for the port."""
_HEADERS = (
    *(b"Cookie: %s", b"Origin: http://%s", b"Origin: null", b"Host: [::1", b"Host: %s:99999"),
    *(b"Authorization: Bearer %s", b"Referer: %s", b": %s", b"X" * 40_000 + b": %s"),
)
_TARGETS = (b"/", b"//%s", b"/?token=%s", b"/?a=%s&token=", b"http://[%s", b"*", b"/?" + b"&" * 999)


def read(message: str | bytes) -> dict:
    """Return a reply of the WebSocket."""
    return json.loads(message) if isinstance(message, str) else msgpack.unpackb(message)


def send_messages(port: int, frames: int, seed: int) -> Counter[str]:
    """Send hostile requests as text and bytes: each has one reply in its format, in order.

    Returns:
        Number of replies by operation or code.
    """
    rng, seen = random.Random(seed), Counter[str]()
    hello = '{"op": "hello", "include_model": false}'
    # Its own pings would wait behind the requests, for long on a busy machine.
    with connect(f"ws://127.0.0.1:{port}", max_size=None, ping_interval=None) as peer:
        for start in range(0, frames, _BATCH):
            peer.send(hello)  # again each time: perhaps a request ended the session
            key = read(peer.recv(WAIT_S))["session_id"]
            sent = []
            for _ in range(min(_BATCH, frames - start)):
                frame: str | bytes = hostile_request(rng, key)
                if rng.random() < 0.5:
                    frame = frame.decode(errors="replace")
                peer.send(frame)
                sent.append(frame)
            for frame in sent:
                reply = peer.recv(WAIT_S)
                assert isinstance(reply, str) == isinstance(frame, str)
                answer = read(reply)
                assert answer["op"] == "error" or answer["op"].endswith("_ok"), frame
                assert answer.get("code") != "internal_error", (frame, answer["message"])
                seen[answer.get("code", answer["op"])] += 1
    return seen


def frame_of(rng: random.Random, content: bytes) -> bytes:
    """Return a masked frame of a WebSocket, with wild bits now and then."""
    first = rng.choice([0x81, 0x82, 0x80, 0x01, 0x89, 0x8A, 0x88, 0xF2, 0x83, rng.randrange(256)])
    size = len(content)
    if rng.random() < 0.1:
        size = rng.choice([0, 1, 126, 65_536, 2**31, 2**63])
    if size < 126:
        head = struct.pack("!BB", first, 0x80 | size)
    elif size < 65_536:
        head = struct.pack("!BBH", first, 0x80 | 126, size)
    else:
        head = struct.pack("!BBQ", first, 0x80 | 127, size)
    mask = rng.randbytes(4)
    return head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(content))


def attack(rng: random.Random, port: int) -> int:
    """Open a connection, and send hostile bytes instead of a handshake or after one.

    Returns:
        The number of frames that were sent; a handshake is one.
    """
    sent = 0
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5.0) as peer:
        peer.settimeout(0.5)
        handshake = HANDSHAKE % port
        sent = 1
        if rng.random() < 0.3:
            peer.sendall(mutate(rng, handshake) if rng.random() < 0.8 else rng.randbytes(300))
        else:
            peer.sendall(handshake)
            peer.recv(4096)
            for _ in range(rng.randrange(1, 6)):
                frame = frame_of(rng, hostile_request(rng, "0")[:300])
                peer.sendall(mutate(rng, frame) if rng.random() < 0.3 else frame)
                sent += 1
        _leave(rng, peer)
    return sent


def hostile_head(rng: random.Random, port: int) -> bytes:
    """Return the head of an HTTP request: wild, broken or none, often with the token in it."""
    secret = rng.choice([*3 * [TOKEN.encode()], TOKEN.encode()[:-1], b"%00", b"\xff" * 9])
    target = rng.choice(_TARGETS).replace(b"%s", secret)
    head = (
        (HANDSHAKE % port)[:-2] if rng.random() < 0.4 else b"GET / HTTP/1.1\r\nHost: localhost\r\n"
    )
    head = head.replace(b"/", target, 1)
    for header in rng.choices(_HEADERS, k=rng.randrange(3)):
        cookie = b"manyworlds_token_%d=%s" % (port, secret)
        head += header.replace(b"%s", cookie if header[:1] == b"C" else secret) + b"\r\n"
    head += b"\r\n"
    return mutate(rng, head) if rng.random() < 0.5 else head


class Door:
    """A page's door, and a page behind it, which notes what reaches it."""

    def __init__(self) -> None:
        self.seen = Counter[str]()
        """Number of requests by the status of their answer, or by what else became of them."""
        self._page = socket.create_server(("127.0.0.1", 0))
        self._strangers: list[bytes] = []
        self.gate = Gate(self._page.getsockname()[1], "127.0.0.1", free_port(), TOKEN)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> Door:
        return self

    def __exit__(self, *_: object) -> None:
        self.gate.close()
        self._page.shutdown(socket.SHUT_RDWR)
        self._page.close()
        self._thread.join(WAIT_S)

    def send(self, frames: int, seed: int) -> Counter[str]:
        """Send hostile heads: none without the token passes, and the door opens for it after."""
        rng, before = random.Random(seed), self.seen.copy()
        for _ in range(frames):
            self.seen[self._knock(rng)] += 1
        assert not self._strangers, self._strangers[:3]
        with socket.create_connection(("127.0.0.1", self.gate.port), WAIT_S) as peer:
            peer.sendall(b"GET /?token=" + TOKEN.encode() + b" HTTP/1.1\r\n\r\n")
            assert peer.recv(100).startswith(b"HTTP/1.1 303")
        return self.seen - before

    def _knock(self, rng: random.Random) -> str:
        """Send a head, and return what became of it."""
        try:
            with socket.create_connection(("127.0.0.1", self.gate.port), WAIT_S) as peer:
                peer.settimeout(WAIT_S)
                head = hostile_head(rng, self.gate.port)
                peer.sendall(head)
                if rng.random() < 0.3:
                    _leave(rng, peer)
                    return "left"
                peer.shutdown(socket.SHUT_WR)
                answer = peer.recv(4096)
        except ConnectionError:
            return "reset"
        assert not answer or answer.startswith(b"HTTP/1.1 "), (head, answer)
        return answer[9:12].decode() or "no answer"

    def _serve(self) -> None:
        """Answer what the door lets pass, as a page would."""
        with contextlib.suppress(OSError):  # closed
            while True:
                peer, _ = self._page.accept()
                with contextlib.suppress(OSError), peer:
                    peer.settimeout(WAIT_S)
                    head = peer.recv(65_536)
                    if TOKEN.encode() not in head:
                        self._strangers.append(head)
                    peer.sendall(ANSWER)


def _leave(rng: random.Random, peer: socket.socket) -> None:
    """Let a connection end by a reset now and then."""
    if rng.random() < 0.5:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
