"""WebSocket of the lab's server: requests, states, events, strangers, and peers that are stuck."""

from __future__ import annotations

import json
import socket
import time

import msgpack
import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from manyworlds.lab import Controller, LabCfg, LiveLab, VerbError
from manyworlds.lab.server import Dispatcher, LabHub, LabServerCfg, Limits
from manyworlds.lab.server.notes import Notes
from manyworlds.utils.web_access import WebAccess
from tests.lab.server.all_operations import OPERATIONS
from tests.lab.server.client import Client, ReplyError
from tests.lab.server.conftest import two_robots
from tests.lab.server.hostile_web import HANDSHAKE
from tests.lab.server.waiting import ANY, WAIT_S, until


class Walker(Controller):
    """Control law that takes a velocity."""

    name = "walker"
    owner = "policy"

    def __init__(self) -> None:
        self.commands = {"twist": np.zeros((1, 3))}

    def compute(self, model, data, target):
        """Return the controls."""
        return self.commands["twist"][0, :2]

    @property
    def twist(self) -> list[float]:
        """The present velocity."""
        return self.commands["twist"][0].tolist()


class WebClient(Client):
    """Client of a WebSocket, in text or binary frames, that keeps what it did not ask for."""

    def __init__(self, socket, encoding: str = "json") -> None:
        super().__init__(self.exchange, encoding)
        self.socket = socket
        self.pushed: list[dict] = []

    def exchange(self, request: bytes) -> bytes:
        """Send a request, and return its reply."""
        self.socket.send(request.decode() if self.is_json else request)
        while True:
            message = self.socket.recv(timeout=WAIT_S)
            assert isinstance(message, str) == self.is_json
            content = message.encode() if self.is_json else message
            read = json.loads(content) if self.is_json else msgpack.unpackb(content)
            if read["op"] not in ("event", "state_full"):
                return content
            self.pushed.append(read)

    def next(self, op: str, condition=lambda message: True) -> dict:
        """Return the next pushed message of a kind for which a condition holds."""
        end = time.monotonic() + WAIT_S
        while True:
            assert time.monotonic() < end
            message = self.pushed.pop(0) if self.pushed else self.receive()
            if message["op"] == op and condition(message):
                return message

    def receive(self) -> dict:
        """Return the next message."""
        message = self.socket.recv(timeout=WAIT_S)
        return json.loads(message) if isinstance(message, str) else msgpack.unpackb(message)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A hub that serves two robots in direct mode; one of them takes a velocity."""
    with LiveLab(two_robots(), LabCfg(mode="direct", start_owner="net")) as lab:
        lab["go"].controller = Walker()
        with LabHub(LabServerCfg(**ANY), report=lambda text: None) as hub:
            hub.attach(lab)
            until(hub.is_open, "the ports are not open")
            hub.allow_page("http://127.0.0.1:8080")
            yield hub, lab


@pytest.fixture
def hub(served):
    """The hub."""
    return served[0]


@pytest.fixture
def lab(served):
    """The lab, running as at its start."""
    lab = served[1]
    lab.call("reset")
    lab.modes.set("direct")
    return lab


@pytest.fixture
def open_client(hub):
    """Function that connects a client; its connection is closed after the test."""
    opened = []

    def open_one(encoding: str = "json", role: str | None = "takeover", **more) -> WebClient:
        line = connect(f"ws://127.0.0.1:{hub.ports['web']}", max_size=None, **more)
        opened.append(line)
        client = WebClient(line, encoding)
        if role is not None:
            client.hello(role=role, include_model=False)
        return client

    yield open_one
    for line in opened:
        line.close()
    until(lambda: not len(hub.dispatcher.sessions), "sessions do not end with their connections")


@pytest.mark.parametrize("encoding", ["json", "msgpack"])
def test_requests_are_those_of_the_other_face(hub, lab, open_client, encoding):
    """Ask over the WebSocket as text and as bytes: same catalogue, and states are the lab's."""
    client = open_client(encoding, role=None)
    world = client.hello(role="takeover")
    model = world.get("mjb") or world.get("mjb__b64__")
    assert model and {"go", "go2"} == {robot["prefix"] for robot in world["articulations"]}
    assert {op["name"] for op in client.ask("meta")["ops"]} == set(OPERATIONS)
    reply = client.ask("step", n_steps=3, per_articulation={"go2": {"ctrl": [1.0, 0.0]}})
    assert reply["per_articulation"]["go2"]["qpos"] == lab.snapshot.qpos[12:24].tolist()
    assert lab["go2"].command.targets.tolist() == [1.0, 0.0]
    assert "mjb" not in client.hello(role="takeover", include_model=False)
    for op, code in (("fly", "unknown_op"), ("set_paused", "missing_field")):
        with pytest.raises(ReplyError) as caught:
            client.ask(op)
        assert caught.value.code == code
    assert hub.web.describe()["peers"] == 1


def test_the_frame_sets_the_format(open_client):
    """Send text and bytes in turn, also before a greeting: replies have the format of frames."""
    client = open_client(role=None)
    for request in ({"op": "meta"}, {"op": "hello", "encoding": "msgpack", "include_model": False}):
        client.socket.send(json.dumps(request))
        assert json.loads(client.socket.recv(WAIT_S))["op"] == f"{request['op']}_ok"
        client.socket.send(msgpack.packb(request))
        assert msgpack.unpackb(client.socket.recv(WAIT_S))["op"] == f"{request['op']}_ok"
    client.socket.send("{rubbish")
    assert json.loads(client.socket.recv(WAIT_S))["code"] == "bad_request"
    client.socket.send(b"\xc1rubbish")
    assert msgpack.unpackb(client.socket.recv(WAIT_S))["code"] == "bad_request"


@pytest.mark.parametrize("encoding", ["json", "msgpack"])
def test_states_are_pushed(lab, open_client, encoding):
    """Subscribe to states: the present one comes, then each newest one, at most at the rate."""
    client = open_client(encoding)
    lab.step(2)
    assert client.ask("subscribe", topics=["state/full"], rate=1000.0)["topics"] == ["state/full"]
    first = client.next("state_full", lambda state: state["step"] == lab.snapshot.step)
    assert first["per_articulation"]["go"]["qpos"] == lab.snapshot.qpos[:12].tolist()
    lab.step()
    assert client.next("state_full")["step"] == first["step"] + 1
    client.ask("subscribe", topics=["state/full"], rate=5.0)
    client.next("state_full")
    began, pushed = time.monotonic(), []
    for _ in range(100):
        lab.step()

    def is_last(state: dict) -> bool:
        pushed.append(state)
        return state["step"] == lab.snapshot.step

    last = client.next("state_full", is_last)
    assert len(pushed) <= 5.0 * (time.monotonic() - began) + 2
    assert last["frame_id"] == lab.snapshot.frame_id
    client.ask("subscribe", topics=[])
    client.pushed.clear()
    lab.step()
    client.ask("heartbeat")
    assert not client.pushed


def test_events_are_pushed(hub, lab, open_client):
    """Subscribe to events: who drives, a fault, a lab that leaves, a sentence for people."""
    client = open_client(role="observer")
    client.ask("subscribe", topics=["events"])
    present = client.next("event")
    assert present["texts"] == [] and present["driver"] == "" and present["manager_present"]
    other = open_client("msgpack", role=None)
    other.hello(role="takeover", client="arm script", include_model=False)
    event = client.next("event", lambda event: "arm script" in event["driver"])
    assert any(text.startswith("arm script") for text in event["texts"])
    assert len(event["clients"]) == 2
    assert client.ask("take_driver")["previous"].startswith("arm script")
    event = client.next("event", lambda event: any("took over" in t for t in event["texts"]))
    assert event["driver"].endswith(client.session_id[:8])
    hub.report("a sentence")
    client.next("event", lambda event: event["texts"] == ["a sentence"])
    hub.attach(None)
    client.next("event", lambda event: not event["manager_present"])
    hub.attach(lab)
    client.next("event", lambda event: event["manager_present"] and event["mode"] == "direct")
    with pytest.raises(VerbError, match="must be a number within"):
        lab.call("step", targets={"go2": {"hip": 1e300}}, owner="net")
    event = client.next("event", lambda event: event["fault"])
    assert any(text.startswith("the world stopped: ") for text in event["texts"])
    lab.call("reset")
    client.next("event", lambda event: not event["fault"])


def test_subscriptions_are_checked(lab, open_client):
    """Subscribe to what there is not, or over another face: one sentence."""
    client = open_client()
    for fields, code, text in (
        ({"topics": ["state"]}, "bad_value", "one of state/full, events, got 'state'"),
        ({"topics": ["events"], "rate": 0.0}, "bad_value", "from 0.1 to 1000"),
        ({"topics": "events"}, "bad_value", "one of state/full, events, got 'e'"),
        ({"topics": ["qqqq"]}, "bad_value", r"got 'qqqq'\."),
        ({}, "missing_field", "needs 'topics'"),
    ):
        with pytest.raises(ReplyError, match=text) as caught:
            client.ask("subscribe", **fields)
        assert caught.value.code == code
    server = Dispatcher(lab)
    other = Client(lambda request: server.handle(request, "a"))
    other.hello()
    with pytest.raises(ReplyError, match="only a WebSocket") as caught:
        other.ask("subscribe", topics=["events"])
    assert caught.value.code == "wrong_transport"


def test_peers_that_do_not_read_delay_nobody(hub, lab, open_client):
    """Ask for megabytes without reading: steps and others go on; old states are dropped."""
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # the rest waits at the server
    line.connect(("127.0.0.1", hub.ports["web"]))
    stuck = open_client("msgpack", max_queue=1, sock=line, close_timeout=0.1)
    stuck.ask("subscribe", topics=["state/full", "events"], rate=1000.0)
    peers = hub.web._peers
    request = msgpack.packb({"op": "meta", "session_id": stuck.session_id})
    for _ in range(100):
        stuck.socket.send(request)
    client = open_client()
    before = lab.snapshot.step
    for _ in range(50):
        client.ask("step")
    assert lab.snapshot.step == before + 50

    def dropped() -> int:
        lab.step()
        return peers[0].dropped["state/full"]

    until(dropped, "states wait for a peer that does not read")
    assert hub.web.describe()["dropped"] > 0
    client.ask("step")


@pytest.mark.parametrize(
    ("origin", "opens"),
    [
        ("http://127.0.0.1:8080", True),
        ("http://localhost:8080", False),  # the request is to 127.0.0.1
        ("http://127.0.0.1:8888", False),
        ("https://evil.example", False),
        ("null", False),
    ],
)
def test_origins_are_checked(hub, open_client, origin, opens):
    """Connect from pages: the lab's own is admitted, others get 403 and a sentence."""
    if opens:
        open_client(origin=origin).ask("heartbeat")
        return
    before = hub.web.describe()["failures"].get("origin", 0)
    with pytest.raises(InvalidStatus) as caught:
        open_client(origin=origin)
    assert caught.value.response.status_code == 403
    assert caught.value.response.body.decode().startswith(f"Pages of '{origin}' may not")
    assert hub.web.describe()["failures"]["origin"] == before + 1


@pytest.mark.parametrize("target", ["//[", "http://[x", "/?token=\u2100"])
def test_strange_addresses_are_refused(target):
    """Ask for an address that cannot be read: it is refused as any other request."""
    access = WebAccess("t" * 43)
    assert access.refusal(target, {})
    assert sum(access.refused.values()) == 1


def test_other_machines_need_the_token(tmp_path, monkeypatch):
    """Listen beyond loopback: without the token of the user's file it is 403 and one sentence."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with LabHub(LabServerCfg(**ANY, listen="0.0.0.0"), report=lambda text: None) as hub:
        until(hub.is_open, "the ports are not open")
        hub.allow_page("http://192.168.1.2:8080/?token=x")
        token = (tmp_path / "manyworlds" / "token").read_text().strip()
        address = f"ws://127.0.0.1:{hub.ports['web']}/"
        for target in (address, f"{address}?token=wrong"):
            with pytest.raises(InvalidStatus) as caught, connect(target):
                pass
            assert caught.value.response.status_code == 403
            assert b"needs its token" in caught.value.response.body
        cookie = {"Cookie": f"manyworlds_token_8080={token}"}
        page = "http://127.0.0.1:8080"
        for target, more in (
            (f"{address}?token={token}", {}),
            (address, {"additional_headers": {"Authorization": f"Bearer {token}"}}),
            (address, {"additional_headers": cookie, "origin": page}),
        ):
            with connect(target, **more) as line:
                line.send('{"op": "meta"}')
                assert json.loads(line.recv(WAIT_S))["op"] == "meta_ok"
        with (
            pytest.raises(InvalidStatus, match="403"),
            connect(f"{address}?token={token}", origin="http://evil.example:8080"),
        ):
            pass
        assert hub.describe()["ports"][0]["use"] == "step"


def test_limits(lab):
    """Send too large, too deep, too many, too often, too many connections: each is refused."""
    limits = Limits(max_bytes=2000, max_depth=5, max_items=50, max_rate=20.0, max_sessions=2)
    with LabHub(LabServerCfg(**ANY, limits=limits), report=lambda text: None) as hub:
        until(hub.is_open, "the ports are not open")
        hub.attach(lab)
        address = f"ws://127.0.0.1:{hub.ports['web']}"
        with connect(address) as line, connect(address):
            for text, message in (
                ('{"op": ' + "[" * 9 + "]" * 9 + "}", "more than 5 levels"),
                (json.dumps({"op": [0] * 60}), "more than 50 values"),
                ("[]", "no map"),
            ):
                line.send(text)
                assert message in json.loads(line.recv(WAIT_S))["message"]
            with pytest.raises(InvalidStatus, match="503"), connect(address):
                pass
            codes = []
            for _ in range(40):
                line.send('{"op": "heartbeat"}')
                codes.append(json.loads(line.recv(WAIT_S))["code"])
            assert "rate_limited" in codes
            line.send("x" * 3000)
            with pytest.raises(ConnectionClosed, match="1009"):
                line.recv(WAIT_S)
        until(lambda: hub.web.failures["closed with 1009"] == 1, "the large message is not counted")
        with connect(address) as line:
            line.send('{"op": "meta"}')
            line.recv(WAIT_S)


def test_floods_of_empty_fragments_end_the_connection(hub):
    """Send a message of many empty fragments: it is not collected, and others are served."""
    address = f"ws://127.0.0.1:{hub.ports['web']}"
    with connect(address) as line, pytest.raises(ConnectionClosed, match="1009"):
        line.send("" for _ in range(20_000))
        line.recv(WAIT_S)
    with connect(address) as line:
        line.send(iter(['{"op": ', '"meta"}']))
        assert json.loads(line.recv(WAIT_S))["op"] == "meta_ok"


def test_a_lost_connection_ends_all(hub, lab, open_client):
    """Drive, hold a velocity, and vanish: the robot stands, nobody drives, the mode is restored."""
    walker = lab["go"].controller
    client = open_client()
    client.ask("set_mode", mode="live")
    held = {"articulation": "go", "linear": [0.5, 0.0, 0.0], "angular": [0.0, 0.0, 0.2]}
    reply = client.ask("hold_twist", **held)
    assert reply["linear"] == [0.5, 0.0, 0.0] and 0.0 < reply["hold_s"] <= 0.5
    assert walker.twist == [0.5, 0.0, 0.2]
    client.socket.socket.shutdown(socket.SHUT_RDWR)  # no goodbye
    until(lambda: walker.twist == [0.0, 0.0, 0.0], "the robot goes on")
    until(lambda: hub.dispatcher.sessions.driver is None, "the driver is not lost")
    until(lambda: lab.modes.mode == "direct", "the mode is not as before")


def test_held_velocities_end(lab):
    """Hold a velocity: it ends 0.5 s after the last request, by a takeover, and by a zero."""
    now = [0.0]
    server = Dispatcher(lab, clock=lambda: now[0])
    first, second = (
        Client(lambda request, peer=peer: server.handle(request, peer)) for peer in "ab"
    )
    first.hello()
    second.hello()
    walker = lab["go"].controller
    held = {"articulation": "go", "linear": [0.4, 0.1, 0.0], "angular": [0.0, 0.0, 0.0]}
    for _ in range(5):
        first.ask("hold_twist", **held)
        now[0] += 0.4
        server.tick()
        assert walker.twist == [0.4, 0.1, 0.0]
    now[0] += 0.2
    server.tick()
    assert walker.twist == [0.0, 0.0, 0.0]
    first.ask("hold_twist", **held)
    second.ask("take_driver")
    server.tick()
    assert walker.twist == [0.0, 0.0, 0.0]
    with pytest.raises(ReplyError, match="drives this world"):
        first.ask("hold_twist", **held)
    second.ask("set_twist", articulation="go", linear=[0.2, 0.0, 0.0])
    second.ask("hold_twist", **held)
    second.ask("hold_twist", **{**held, "linear": [0.0, 0.0, 0.0]})
    second.ask("set_twist", articulation="go", linear=[0.2, 0.0, 0.0])
    now[0] += 1.0
    server.tick()
    assert walker.twist == [0.2, 0.0, 0.0], "a velocity that was set stays"
    second.ask("hold_twist", **held)
    lab["go"].controller, now[0] = type(lab["go2"].controller)(), now[0] + 1.0
    try:
        server.tick()
        assert "could not be ended" in server.sessions.events[-1]
    finally:
        lab["go"].controller = walker
    with pytest.raises(ReplyError, match="takes a velocity"):
        second.ask("hold_twist", **{**held, "articulation": "go2"})


def test_who_waits_is_not_silent(lab):
    """Let the request of a session with heartbeats wait for another one: the session lives."""
    now = [0.0]
    server = Dispatcher(lab, clock=lambda: now[0])
    client = Client(lambda request: server.handle(request, "a"))
    client.hello(heartbeats=True)
    now[0] += 1.9
    server.sessions.note_message("a", now[0])
    now[0] += 1.9
    server.tick()
    client.ask("heartbeat")


@pytest.mark.slow
@pytest.mark.parametrize("reads", [True, False])
def test_pings(lab, monkeypatch, reads):
    """Answer for longer than a ping waits: who reads stays, however many requests wait; others end.

    Messages behind those that wait, and pongs among them, are not read.
    """
    monkeypatch.setattr("manyworlds.lab.server.web._PING_S", 0.1)
    with LabHub(LabServerCfg(**ANY), report=lambda text: None) as hub:
        hub.attach(lab)
        until(hub.is_open, "the ports are not open")
        answer = hub.answer

        def slowly(*args):
            time.sleep(0.4)
            return answer(*args)

        monkeypatch.setattr(hub, "answer", slowly)
        if not reads:
            with socket.create_connection(("127.0.0.1", hub.ports["web"])) as peer:
                peer.sendall(HANDSHAKE % hub.ports["web"])
                until(lambda: hub.web._peers, "no connection")
                until(lambda: not hub.web._peers, "who does not answer pings stays")
                return
        with connect(f"ws://127.0.0.1:{hub.ports['web']}") as peer:
            for _ in range(4):
                peer.send('{"op": "meta"}')
            for _ in range(4):
                assert json.loads(peer.recv(WAIT_S))["op"] == "meta_ok"


def test_notes_are_bounded():
    """Add more sentences than are kept: the newest ones are told, each once."""
    notes = Notes()
    for i in range(250):
        notes.append(str(i))
    assert len(notes) == 100 and notes.since(248) == (["248", "249"], 250)
    fresh, total = notes.since(0)
    assert len(fresh) == 100 and notes.since(total) == ([], 250)
