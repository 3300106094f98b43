"""Ports of ZeroMQ, and what pages of web sites can send to them."""

from __future__ import annotations

import json
import socket
import tracemalloc

import numpy as np
import pytest
import zmq

from manyworlds.lab.server import LabHub, LabServerCfg
from manyworlds.lab.server.ports import MOST_FRAMES, Port
from manyworlds.plugins.urlab.streams import pack_control
from tests.lab.server.waiting import ANY, WAIT_S, until

_FILLER = 3 * 256


def form(*frames: bytes) -> bytes:
    """Content of a request with which a page sends a message in ZeroMQ's protocol of version 1.

    In that protocol a frame is its length, its flags and its content, so that the head of an HTTP
    request is read as some frames, too; a filler of frames of three bytes ends them.
    """
    message = b""
    for i, frame in enumerate(frames):
        more = i < len(frames) - 1
        message += bytes([len(frame) + 1, more]) + frame
    for path in range(3):
        head = f"POST /{'a' * path} HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.test\r\n\r\n"
        content = head.encode() + b"\x02" * _FILLER + message
        at = 0
        while at < len(head) + _FILLER:
            at += 1 + content[at]
        if at == len(head) + _FILLER:
            return content
    raise AssertionError("the frames do not begin where the message does")


def test_floods_of_empty_frames_are_not_kept():
    """Send a message of many empty frames: the first ones are kept, and the next message comes."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as peer:
        port = Port(context, "test", zmq.ROUTER, "127.0.0.1", 0, print, 1000)
        assert port.poll(0.0)
        peer.connect(f"tcp://127.0.0.1:{port.number}")
        for _ in range(200_000):
            peer.send(b"", zmq.SNDMORE)
        peer.send(b"end")
        peer.send(b"next")
        tracemalloc.start()
        found: list[list[zmq.Frame]] = []
        until(lambda: found.extend(port.receive(2)) or len(found) == 2, "a message is missing")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert [len(frames) for frames in found] == [MOST_FRAMES, 2]
        assert found[1][1].bytes == b"next"
        assert peak < 2**20
        port.close()


@pytest.fixture
def hub(lab):
    """A hub that serves the lab on any free ports, and what it reported."""
    reports: list[str] = []
    with LabHub(LabServerCfg(**ANY), report=reports.append) as hub:
        hub.attach(lab)
        until(hub.is_open, "the ports are not open")
        yield hub
    assert not reports


MESSAGES = {
    "step": (b"", json.dumps({"op": "meta"}).encode()),
    "control": (b"go/control ", pack_control([(0, 3.0)])),
    "fast_path": (b"", b"{}"),
}


@pytest.mark.parametrize(
    "use", ["step", "state", "control", "info", "image", "fast_path", "fast_path_bus"]
)
def test_pages_of_web_sites_cannot_talk_to_the_ports(lab, hub, use):
    """Send what a browser lets any page send: the connection ends, and nothing is carried out."""
    with socket.create_connection(("127.0.0.1", hub.ports[use]), timeout=WAIT_S) as peer:
        received = b""
        try:
            peer.sendall(form(*MESSAGES.get(use, (b"\x01",))))
            while chunk := peer.recv(1000):
                received += chunk
        except ConnectionError:
            pass
    assert len(received) <= 10, "more than ZeroMQ's greeting"
    lab.step()
    np.testing.assert_array_equal(lab["go"].command.targets, 0.0)
