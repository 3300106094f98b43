"""Hostile bytes over the WebSocket and over the door of a page: nothing fails, nothing hangs."""

from __future__ import annotations

import logging
import os
import random
import socket
import time

import pytest
from websockets.sync.client import connect

from manyworlds.lab import LabCfg, LiveLab, RecorderCfg
from manyworlds.lab.server import LabHub, LabServerCfg
from manyworlds.viewer.browser.gate import Gate
from tests.browser import free_port
from tests.lab.server.conftest import two_robots
from tests.lab.server.hostile_web import WAIT_S, Door, attack, read, send_messages
from tests.lab.server.waiting import ANY, until

FRAMES = int(os.environ.get("MANYWORLDS_FUZZ_FRAMES", "2000"))
"""Number of messages; a tenth as many connections send what is no WebSocket."""


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


def test_hostile_messages(served):
    """Send hostile requests as text and bytes: each has one reply in its format, in order."""
    hub, lab = served
    before = hub.web.messages
    seen = send_messages(hub.ports["web"], FRAMES, seed=0)
    assert seen.total() == FRAMES
    assert hub.web.messages > before + FRAMES
    lab.call("reset")
    step = lab.snapshot.step
    assert lab.call("step", n_steps=2)["step"] == step + 2


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
    with Door() as door, caplog.at_level(logging.WARNING):
        seen = door.send(FRAMES // 2, seed=2)
    assert not caplog.records
    for fate in ("200", "303", "400", "403", "left"):
        assert seen[fate] > FRAMES // 500, seen
    assert door.gate.access.refused["token"] > FRAMES // 50


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
