"""Hub: sockets, connections that come and go, ports in use."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgpack
import numpy as np
import pytest
import zmq
from websockets.sync.client import connect as web_connect

from manyworlds.lab import LabCfg, LiveLab
from manyworlds.lab.client.request_socket import unpack_values
from manyworlds.lab.loop.shared_snapshots import unpack_snapshot
from manyworlds.lab.server import LabHub, LabServerCfg, Limits
from manyworlds.lab.server.ports import STATE_BACKLOG, holder_of
from manyworlds.plugins.urlab.streams import pack_control
from tests.lab.server.client import Client, ReplyError
from tests.lab.server.conftest import two_robots
from tests.lab.server.waiting import ANY, WAIT_S, until
from tests.waiting import PATIENCE_S


@pytest.fixture
def context():
    """ZeroMQ's context of the clients."""
    with zmq.Context() as context:
        yield context
        context.destroy(linger=0)


@pytest.fixture
def hub(lab):
    """A hub that serves the lab on any free ports."""
    with LabHub(LabServerCfg(**ANY)) as hub:
        hub.attach(lab)
        until(hub.is_open, "the ports are not open")
        yield hub


def connect(context, port: int, kind: int = zmq.REQ, topic: bytes = b"") -> zmq.Socket:
    """Connect to a port as a client."""
    peer = context.socket(kind)
    peer.setsockopt(zmq.LINGER, 0)
    peer.setsockopt(zmq.RCVTIMEO, int(1e3 * WAIT_S))
    if kind == zmq.SUB:
        peer.setsockopt(zmq.SUBSCRIBE, topic)
    peer.connect(f"tcp://127.0.0.1:{port}")
    return peer


def client_of(context, hub) -> Client:
    """Return a client that talks to the hub's socket."""
    peer = connect(context, hub.ports["step"])

    def send(request: bytes) -> bytes:
        peer.send(request)
        return peer.recv()

    client = Client(send)
    client.socket = peer
    return client


def read_joint(peer, topic: bytes):
    """Return the next state of a joint, as a program in another language reads it."""
    while True:
        name, payload = peer.recv_multipart()
        if name == topic:
            return struct.unpack("<Ifff", payload)


@pytest.mark.parametrize("space", [b"", b" "])
def test_a_program_of_twenty_lines_moves_a_joint(lab, hub, context, space):
    """Publish a control, read the joint: it moves, and the other robot does not."""
    lab.modes.set("live")
    states = connect(context, hub.ports["state"], zmq.SUB, b"go/joint/hip")
    others = connect(context, hub.ports["state"], zmq.SUB, b"go2/joint/hip")
    control = connect(context, hub.ports["control"], zmq.PUB)
    start = read_joint(states, b"go/joint/hip")
    assert start[0] == lab.model.joint("go/hip").id

    def moved():
        control.send_multipart([b"go/control" + space, pack_control([(0, 3.0)])])
        return read_joint(states, b"go/joint/hip")[1] > start[1] + 0.05

    until(moved, "the joint does not move")
    assert lab["go2"].command.targets.tolist() == [0.0, 0.0]
    assert abs(read_joint(others, b"go2/joint/hip")[1]) < 0.05


def listening(port: int) -> set[str]:
    """Addresses of this machine at which a port is open, as Linux lists them."""
    found = set()
    for table, local in (("tcp", "0100007F"), ("tcp6", "0" * 24 + "01000000")):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            address, _, number = line.split()[1].partition(":")
            if line.split()[3] == "0A" and int(number, 16) == port:
                found.add("local" if address == local else address)
    return found


@pytest.mark.skipif(not Path("/proc/net/tcp").is_file(), reason="needs Linux")
def test_ports_are_open_for_this_machine_alone(hub):
    """Look at the sockets of the system: each port of a hub listens on the loopback address."""
    assert {"state", "control", "info", "step"} <= set(hub.ports)
    for name, port in hub.ports.items():
        if port:
            assert listening(port) == {"local"}, name


def test_all_topics(lab, hub, context):
    """Subscribe to everything, in a paused world too: each kind of topic comes."""
    lab.modes.set("live")
    lab.call("set_actions", robot="go", actions=5)
    lab.pause()
    peer = connect(context, hub.ports["state"], zmq.SUB)
    lab.call("set_actions", robot="go", actions=5)
    seen = {}
    until(
        lambda: seen.update([peer.recv_multipart()]) or {b"state/full", b"go/actions"} <= set(seen),
        "topics are missing",
    )
    for topic in (b"go/joint/hip", b"go2/sensor/gyro", b"go/base_state/root", b"scene/box/xquat"):
        assert topic in seen
    assert len(seen[b"go/base_state/root"]) == 52 and len(seen[b"scene/box/qvel"]) == 48
    full = msgpack.unpackb(seen[b"state/full"])
    assert full["op"] == "state_full" and full["mode"] == "live"
    assert set(full["per_articulation"]) == {"go", "go2"} and set(full["entities"]) == {"box"}


def test_only_what_is_asked_for_is_encoded(lab, hub, context):
    """Subscribe to nothing, then to loose bodies: nothing else is sent."""
    lab.step(5)
    time.sleep(0.1)
    assert hub.streams.states[0].messages == 0
    peer = connect(context, hub.ports["state"], zmq.SUB, b"scene/")
    until(lambda: hub.streams.states[0].wanted, "the subscription does not come")
    lab.step()
    topics = {peer.recv_multipart()[0] for _ in range(4)}
    assert topics == {b"scene/box/" + f for f in (b"xpos", b"xquat", b"qpos", b"qvel")}
    peer.close()
    until(lambda: not hub.streams.states[0].wanted, "the subscription does not end")


def test_whole_snapshots_are_for_those_who_name_them(lab, hub, context):
    """Subscribe to all topics: no snapshot comes; to snapshots: those of the lab come."""
    lab.call("set_mode", mode="live")
    everything = connect(context, hub.ports["state"], zmq.SUB)
    topics = {everything.recv_multipart()[0] for _ in range(50)}
    assert b"state/full" in topics and b"state/snapshot" not in topics
    everything.close()
    peer = connect(context, hub.ports["state"], zmq.SUB, b"state/snapshot")
    topic, content = peer.recv_multipart()
    assert topic == b"state/snapshot"
    plain = unpack_values(content)
    assert unpack_snapshot(plain).layout == lab.snapshot.layout
    until(lambda: lab.snapshot.frame_id > plain["frame_id"], "no newer snapshot")


def test_lists_of_actuators(lab, hub, context):
    """Run: late readers receive the list of each robot."""
    lab.modes.set("live")
    peer = connect(context, hub.ports["info"], zmq.SUB)
    import json

    robots = {json.loads(peer.recv())["robot"] for _ in range(2)}
    assert robots == {"go", "go2"}


def test_all_modes_are_published(lab, hub, context):
    """Change the mode: subscribers keep getting frames, and each says its mode."""
    peer = connect(context, hub.ports["state"], zmq.SUB, b"state/full")
    client = client_of(context, hub)
    client.hello()
    until(lambda: hub.streams.states[0].wanted, "the subscription does not come")
    state = {"qpos": lab.snapshot.qpos.tolist(), "qvel": lab.snapshot.qvel.tolist(), "time": 1.0}
    for mode, fields in (("direct", {}), ("puppet", {"mode": "puppet", **state}), ("live", {})):
        client.ask("set_mode", mode=mode)
        client.ask("step", **fields)
        until(
            lambda mode=mode: msgpack.unpackb(peer.recv_multipart()[1])["mode"] == mode,
            f"no frame of {mode}",
        )


def test_requests_over_a_socket(lab, hub, context):
    """Greet, step and leave over a socket: states equal the lab's."""
    client = client_of(context, hub)
    client.hello()
    reply = client.ask("step", n_steps=10)
    assert reply["per_articulation"]["go"]["qpos"][0] == lab.snapshot.qpos[0]
    client.socket.send(b"{rubbish")
    assert msgpack.unpackb(client.socket.recv())["code"] == "bad_request"


def test_programs_may_come_first(lab, context):
    """Connect before the server exists: requests are answered when it does."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    peer = connect(context, port)
    peer.send(msgpack.packb({"op": "hello"}))
    with LabHub(LabServerCfg(**{**ANY, "step_port": port})) as hub:
        hub.attach(lab)
        assert msgpack.unpackb(peer.recv())["op"] == "hello_ok"


def test_a_port_in_use_is_told_and_taken_later(lab, context):
    """Open two hubs on the same ports: the second names the first, and follows when it ends."""
    said: list[str] = []
    first = LabHub(LabServerCfg(**ANY))
    first.start()
    first.attach(lab)
    until(first.is_open, "the ports are not open")
    ports = {f"{use}_port": number for use, number in first.ports.items()}
    with (
        LiveLab(two_robots(), LabCfg(mode="direct")) as other,
        LabHub(LabServerCfg(**ports), said.append) as second,
    ):
        second.attach(other)
        until(lambda: len(said) == len(ports), "the ports in use are not told")
        assert all(f"in use by process {os.getpid()} (" in text for text in said), said
        assert not second.is_open()
        states = {port["state"] for port in second.describe()["ports"]}
        assert states == {"waiting"} and second.describe()["ports"][0]["error"] in said
        client = client_of(context, first)
        client.hello()
        assert client.ask("step")["step"] == lab.snapshot.step
        first.stop()
        until(second.is_open, "the ports do not open")
        assert sum("is free and open now" in text for text in said) == len(ports)
        fresh = client_of(context, second)
        assert fresh.hello()["manager_present"]
        with pytest.raises(ReplyError) as caught:
            client.ask("step")  # connects to the second by itself
        assert caught.value.code == "session_expired"
    assert holder_of(1) == ""


SCRIPT = """
import sys, time, msgpack, zmq
peer = zmq.Context().socket(zmq.REQ)
peer.connect("tcp://127.0.0.1:" + sys.argv[1])
def ask(**fields):
    peer.send(msgpack.packb(fields))
    return msgpack.unpackb(peer.recv())
key = ask(op="hello", heartbeats=sys.argv[2] == "1")["session_id"]
ask(op="set_mode", mode="direct", session_id=key)
print("ready", flush=True)
while True:
    time.sleep(0.2)
    ask(op="heartbeat", session_id=key)
"""


@pytest.mark.slow
@pytest.mark.parametrize("heartbeats", ["0", "1"])
def test_a_killed_driver_loses_the_world(lab, hub, context, heartbeats):
    """Kill -9 the process that drives: another one drives, and the mode is as before."""
    lab.modes.set("live")
    command = [sys.executable, "-c", SCRIPT, str(hub.ports["step"]), heartbeats]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        client = client_of(context, hub)
        client.hello()
        with pytest.raises(ReplyError):
            client.ask("step")
        assert lab.modes.mode == "direct"
        process.send_signal(signal.SIGKILL)
        process.wait()
        until(lambda: hub.dispatcher.sessions.driver is None, "the driver is not lost")
    until(lambda: lab.modes.mode == "live", "the mode is not as before")
    client.ask("set_paused", paused=True)


@pytest.mark.slow
def test_clients_that_do_not_read_delay_nobody(lab, hub, context):
    """Send requests without reading replies, subscribe without reading: steps go on."""
    stuck = connect(context, hub.ports["state"], zmq.SUB)
    stuck.setsockopt(zmq.RCVHWM, 1)
    dealer = connect(context, hub.ports["step"], zmq.DEALER)
    for _ in range(200):
        dealer.send_multipart([b"", msgpack.packb({"op": "meta"})])
    dealer.send_multipart([b"no", b"frames", b"of", b"a", b"request"])
    client = client_of(context, hub)
    client.hello()
    before = lab.snapshot.step
    for _ in range(300):
        client.ask("step")
    assert lab.snapshot.step == before + 300
    until(lambda: hub.dispatcher.errors["bad_frames"] == 1, "the bad frames are not counted")


def test_slow_readers_get_few_old_states():
    """Leave many states unread, then read: most were dropped, and the next one that comes is new.

    The rest waited in the reader's queue of one message, in buffers of the operating system, and in
    the server, which keeps 500.
    """
    hub = LabHub(LabServerCfg(**ANY))  # without its threads
    (outlet,) = hub.streams.states
    assert outlet.poll(0.0)
    with zmq.Context() as context, context.socket(zmq.SUB) as slow:
        slow.setsockopt(zmq.RCVHWM, 1)
        slow.setsockopt(zmq.SUBSCRIBE, b"state/full")
        slow.connect(f"tcp://127.0.0.1:{outlet.number}")
        until(outlet.read_subscriptions, "the reader does not come")
        for _ in range(5000):
            outlet.send(b"state/full", bytes(20_000))
        waiting = 0
        while slow.poll(500):
            slow.recv_multipart()
            waiting += 1
        assert STATE_BACKLOG <= waiting <= STATE_BACKLOG + 300
        outlet.send(b"state/full", b"new")
        assert slow.recv_multipart()[1] == b"new"
    hub.stop()


def test_large_messages_cut_the_connection(lab, context):
    """Send more than allowed: it is not read, and others are served."""
    with LabHub(LabServerCfg(**ANY, limits=Limits(max_bytes=100_000))) as hub:
        hub.attach(lab)
        until(hub.is_open, "the ports are not open")
        client = client_of(context, hub)
        client.hello()
        large = connect(context, hub.ports["step"])
        large.setsockopt(zmq.RCVTIMEO, 300)
        large.send(b"{" * 200_000)
        with pytest.raises(zmq.Again):
            large.recv()
        client.ask("step")


def test_the_hub_outlives_labs(lab, hub, context):
    """Reload under a connected client: greetings say that no world is there, then it goes on."""
    client = client_of(context, hub)
    client.hello()
    hub.attach(None)
    with pytest.raises(ReplyError) as caught:
        client.ask("step")
    assert caught.value.code == "no_active_manager"
    with LiveLab(two_robots(), LabCfg(mode="direct")) as other:
        assert other["go"].owner == "panel"
        hub.attach(other)
        assert other["go"].owner == "net"
        assert client.ask("step", n_steps=7)["step"] == 7.0 == other.snapshot.step
        hub.attach(None)


def test_rebuilds_reach_clients(lab, hub, context):
    """Rebuild the world with one robot less: lists, states and requests follow."""
    client = client_of(context, hub)
    client.hello()
    from manyworlds.lab import world_from_scene
    from manyworlds.scene import SceneCfg
    from tests.lab.server.conftest import GO, entity

    lab.rebuild(lambda: world_from_scene(SceneCfg(entities={"go": entity(GO)})))
    reply = client.ask("step")
    assert set(reply["per_articulation"]) == {"go"} and reply["entities"] == {}
    assert np.size(reply["per_articulation"]["go"]["qpos"]) == lab.model.nq
    assert [r["prefix"] for r in client.hello()["articulations"]] == ["go"]
    peer = connect(context, hub.ports["state"], zmq.SUB, b"state/full")
    until(lambda: hub.streams.states[0].wanted, "the subscription does not come")
    lab.step()
    assert set(msgpack.unpackb(peer.recv_multipart()[1])["per_articulation"]) == {"go"}


def test_failures_that_last_are_told_once():
    """Fail to read the world for a moment, then for long: only the second one is told, once."""
    said: list[str] = []
    hub = LabHub(LabServerCfg(**ANY), report=said.append)
    for reason, now, told in (
        ("busy", 0.0, 0),
        ("busy", 0.5, 0),
        ("gone", 0.9, 0),
        ("gone", 1.5, 0),
        ("gone", 2.0, 1),
        ("gone", 9.0, 1),
        ("busy", 9.5, 1),
        ("busy", 10.6, 2),
    ):
        hub.streams._fail(reason, now)
        assert len(said) == told, (reason, now)
    assert said == ["Nothing is published: gone", "Nothing is published: busy"]
    hub.stop()


def test_an_export_delays_nobody_else(lab, context, monkeypatch):
    """Export a model for long: an old client's hello waits or is refused; others are answered."""
    exported, call = threading.Event(), lab.call

    def slowly(verb: str, **fields):
        if verb == "export_model":
            assert exported.wait(WAIT_S)
        return call(verb, **fields)

    monkeypatch.setattr(lab, "call", slowly)
    with LabHub(LabServerCfg(**ANY)) as hub:
        hub.attach(lab)
        until(hub.is_open, "the ports are not open")
        monkeypatch.setattr("manyworlds.lab.server.request_server._PATIENCE_S", 0.1)
        with pytest.raises(ReplyError, match="being exported") as refused:
            client_of(context, hub).ask("hello")
        assert refused.value.code == "not_ready"
        monkeypatch.setattr("manyworlds.lab.server.request_server._PATIENCE_S", WAIT_S)
        old, other = connect(context, hub.ports["step"]), client_of(context, hub)
        old.send(b'{"op": "hello"}')
        other.hello(include_model=False, role="takeover")
        for _ in range(3):
            assert "time" in other.ask("step")
        assert not old.poll(0)
        with (
            web_connect(f"ws://127.0.0.1:{hub.ports['web']}") as web,
            web_connect(f"ws://127.0.0.1:{hub.ports['web']}") as second,
        ):
            web.send('{"op": "hello"}')
            second.send('{"op": "meta"}')
            assert '"meta_ok"' in second.recv(WAIT_S)
            exported.set()
            assert json.loads(web.recv(WAIT_S))["mjb_size"] > 0
        reply = msgpack.unpackb(old.recv())
        assert reply["op"] == "hello_ok" and len(reply["mjb"]) == reply["mjb_size"] > 0


def test_policies_keep_their_robots(tmp_path):
    """Serve a world whose robot a policy owns: the network does not take it."""
    with LiveLab(two_robots(), LabCfg(mode="direct", start_owner="policy")) as lab:
        with LabHub(LabServerCfg(**ANY)) as hub:
            hub.attach(lab)
            assert lab["go"].owner == "policy"
        with LabHub(LabServerCfg(**ANY, own_robots=False)) as hub:
            lab["go"].take("panel")
            hub.attach(lab)
            assert lab["go"].owner == "panel"


def test_without_the_extra(monkeypatch):
    """Hide pyzmq: the hub names the extra that installs it."""
    monkeypatch.setitem(sys.modules, "zmq", None)
    with pytest.raises(ImportError, match=r"manyworlds-rl\[net\]"):
        LabHub()


@pytest.mark.slow
def test_a_process_may_end_without_stopping():
    """Leave a hub and a client alone: both end with the interpreter, which does not crash."""
    code = f"""
from manyworlds.lab import LiveLab
from manyworlds.lab.client import connect
from manyworlds.lab.server import LabHub, LabServerCfg
from tests.lab.server.conftest import two_robots
from tests.lab.server.waiting import until
class Hub(LabHub):
    def stop(self):
        super().stop()
        print("stopped")
lab = LiveLab(two_robots())
lab.start()
hub = Hub(LabServerCfg(**{ANY!r}))
hub.start()
hub.attach(lab)
until(hub.is_open, "the ports are not open")
client = connect(f"tcp://127.0.0.1:{{hub.ports['step']}}")
assert client.data.time >= 0.0
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout, done.stderr) == (0, "stopped\n", "")
