"""Hostile bytes over the WebSocket and over the door of a page: nothing fails, nothing hangs."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import socket
import struct
import time

import msgpack
import pytest
from websockets.sync.client import connect

from manyworlds.lab import LabCfg, LiveLab, RecorderCfg
from manyworlds.lab.network import LabHub, LabServerCfg
from manyworlds.viewer.browser.gate import Gate
from tests.browser import free_port
from tests.lab.network.conftest import two_robots
from tests.lab.network.hostile import hostile_request, mutate
from tests.lab.network.waiting import ANY, until

FRAMES = int(os.environ.get("MANYWORLDS_FUZZ_FRAMES", "2000"))
"""Number of messages; a tenth as many connections send what is no WebSocket."""
BATCH = 50
WAIT_S = 30.0


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A hub that serves two robots in direct mode, whose recordings lie in a folder."""
    folder = tmp_path_factory.mktemp("fuzz")
    cfg = LabCfg(mode="direct", start_owner="net", recorder=RecorderCfg(folder=folder / "here"))
    with (
        LiveLab(two_robots(), cfg) as lab,
        LabHub(LabServerCfg(**ANY), report=lambda text: None) as hub,
    ):
        hub.attach(lab)
        until(hub.is_open, "the ports are not open")
        yield hub, lab
        assert {path.name for path in folder.iterdir()} <= {"here"}


def read(message: str | bytes) -> dict:
    """Return a reply."""
    return json.loads(message) if isinstance(message, str) else msgpack.unpackb(message)


def test_hostile_messages(served):
    """Send hostile requests as text and bytes: each has one reply in its format, in order."""
    hub, lab = served
    rng = random.Random(0)
    before = hub.web.messages
    with connect(f"ws://127.0.0.1:{hub.ports['web']}", max_size=None) as peer:
        peer.send('{"op": "hello", "include_model": false}')
        key = read(peer.recv(WAIT_S))["session_id"]
        for _ in range(FRAMES // BATCH):
            sent = []
            for _ in range(BATCH):
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
            peer.send('{"op": "hello", "include_model": false}')  # perhaps a request ended it
            key = read(peer.recv(WAIT_S))["session_id"]
    assert hub.web.messages == before + 1 + FRAMES // BATCH * (BATCH + 1)
    lab.call("reset")
    step = lab.snapshot.step
    assert lab.call("step", n_steps=2)["step"] == step + 2


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


HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


def attack(rng: random.Random, port: int) -> None:
    """Open a connection, and send hostile bytes instead of a handshake or after one."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5.0) as peer:
        peer.settimeout(0.5)
        handshake = HANDSHAKE % port
        if rng.random() < 0.3:
            peer.sendall(mutate(rng, handshake) if rng.random() < 0.8 else rng.randbytes(300))
        else:
            peer.sendall(handshake)
            peer.recv(4096)
            for _ in range(rng.randrange(1, 6)):
                frame = frame_of(rng, hostile_request(rng, "0")[:300])
                peer.sendall(mutate(rng, frame) if rng.random() < 0.3 else frame)
        if rng.random() < 0.5:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_hostile_connections(served):
    """Break handshakes and frames: connections end, failures are counted, others are served."""
    hub, lab = served
    rng = random.Random(1)
    step = lab.snapshot.step
    for _ in range(FRAMES // 10):
        attack(rng, hub.ports["web"])
    with connect(f"ws://127.0.0.1:{hub.ports['web']}") as peer:
        peer.send('{"op": "meta"}')
        assert read(peer.recv(WAIT_S))["op"] == "meta_ok"
    until(lambda: not hub.web._peers, "connections stay")
    assert sum(hub.web.failures.values()) > FRAMES // 50 and not hub.web.failures["defects"]
    assert lab.snapshot.step == step, "a request without a session was carried out"
    assert not hub.reports


def test_hostile_requests_of_pages(caplog):
    """Send broken heads to the door of a page: none passes, and it opens for the token after."""
    rng = random.Random(2)
    passed = []
    with socket.create_server(("127.0.0.1", 0)) as page:
        page.setblocking(False)
        gate = Gate(page.getsockname()[1], "127.0.0.1", free_port(), "t" * 43)
        try:
            with caplog.at_level(logging.WARNING):
                for _ in range(FRAMES // 10):
                    attack(rng, gate.port)
                    with contextlib.suppress(BlockingIOError):
                        passed.append(page.accept())
            assert not passed and not caplog.records
            with socket.create_connection(("127.0.0.1", gate.port), WAIT_S) as peer:
                peer.sendall(b"GET /?token=" + b"t" * 43 + b" HTTP/1.1\r\n\r\n")
                assert peer.recv(100).startswith(b"HTTP/1.1 303")
        finally:
            gate.close()
    assert gate.access.refused["token"] > FRAMES // 50


def test_slow_heads_are_dropped(monkeypatch):
    """Send a head byte by byte: the connection ends after a time, and others are served."""
    monkeypatch.setattr("manyworlds.viewer.browser.gate._HEAD_S", 0.1)
    gate = Gate(1, "127.0.0.1", free_port(), "t" * 43)
    try:
        with socket.create_connection(("127.0.0.1", gate.port), WAIT_S) as peer:
            peer.sendall(b"GET /")
            began = time.monotonic()
            assert peer.recv(1) == b""
            assert time.monotonic() - began < WAIT_S
    finally:
        gate.close()
