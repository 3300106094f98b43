"""Images for ROS, from a server that may be started again."""

from __future__ import annotations

import threading
from collections import Counter

import msgpack
import pytest
import zmq

from manyworlds.plugins.ros2 import bridge
from manyworlds.plugins.ros2.bridge import ImageReader
from tests.lab.server.waiting import until


class Server:
    """A server of requests that knows one session, and may forget it, or a reply."""

    def __init__(self, context: zmq.Context) -> None:
        self.socket = context.socket(zmq.ROUTER)
        self.port = self.socket.bind_to_random_port("tcp://127.0.0.1")
        self.session, self.lab, self.forgets = "a", "one", False
        self.asked: Counter[str] = Counter()
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        """Answer requests until the end."""
        while not self.stopping.is_set():
            if not self.socket.poll(20):
                continue
            *head, content = self.socket.recv_multipart()
            request = msgpack.unpackb(content)
            self.asked[request["op"]] += 1
            if self.forgets and request["op"] == "call_verb":
                self.forgets = False
                continue
            self.socket.send_multipart([*head, msgpack.packb(self.answer(request))])

    def answer(self, request: dict) -> dict:
        """Return the reply to a request."""
        if request["op"] == "hello":
            assert request["include_model"] is False  # any names will do
            lab = {"protocol": 1, "driver": False, "lab_id": self.lab}
            return {"op": "hello_ok", "session_id": self.session, **lab}
        if request["lab_id"] != self.lab:
            return {"op": "error", "code": "another_lab", "message": "another lab."}
        if request["session_id"] != self.session:
            return {"op": "error", "code": "session_expired", "message": "no session."}
        if request["op"] in ("heartbeat", "close_session"):
            return {"op": f"{request['op']}_ok", "driver": False}
        if request["verb"] == "list_cameras":
            return {"op": "call_verb_ok", "result": {"cameras": {"eye": {"source": "model"}}}}
        return {"op": "call_verb_ok", "result": {"header": {"camera": "eye"}, "data": b"x"}}

    def close(self) -> None:
        """Stop."""
        self.stopping.set()
        self.thread.join()


@pytest.fixture
def server():
    """Such a server."""
    with zmq.Context() as context:
        server = Server(context)
        yield server
        server.close()
        context.destroy(linger=0)


def test_images_go_on_after_a_restart(server, monkeypatch):
    """Forget the session, lose a reply, be another lab: the reader says hello, and images come."""
    monkeypatch.setattr(bridge, "_IMAGES_S", 0.5)
    reader = ImageReader(f"tcp://127.0.0.1:{server.port}", ["eye"], ["rgb"], 0.001)
    until(reader.take, "no image")
    server.session = "b"
    until(lambda: server.asked["hello"] == 2, "the reader does not say hello again")
    reader.take()
    until(reader.take, "no image after the restart")
    assert reader.problems() == []
    server.forgets = True
    until(reader.problems, "the lost reply is not told")
    reader.take()
    until(reader.take, "no image after the lost reply")
    server.lab, server.session = "two", "c"
    until(reader.problems, "the other lab is not told")
    reader.take()
    until(reader.take, "no image of the other lab")
    reader.close()
