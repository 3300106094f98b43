"""The server in a process of its own."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest
import zmq

from manyworlds.lab import LabCfg, LiveLab, world_from_scene
from manyworlds.lab.client import connect as lab_client
from manyworlds.lab.server import HubProcess, LabServerCfg
from manyworlds.plugins.urlab.fast_path.registry import find_publishers
from manyworlds.scene import SceneCfg
from tests.lab.server.client import Client, ReplyError
from tests.lab.server.conftest import GO, entity, two_robots
from tests.lab.server.test_hub import client_of, connect, read_joint
from tests.lab.server.test_web import Walker
from tests.lab.server.waiting import ANY, until
from tests.waiting import PATIENCE_S


@pytest.fixture
def served(lab, server_process):
    """A server in a process of its own, serving the lab."""
    server_process.attach(lab)
    yield server_process
    server_process.attach(None)


@pytest.fixture
def context():
    """ZeroMQ's context of the clients."""
    with zmq.Context() as context:
        yield context
        context.destroy(linger=0)


def test_steps_over_a_process_are_those_of_mujoco(lab, served, context):
    """Step 200 times with controls: each state equals the lab's, to the last bit, in order."""
    client = client_of(context, served)
    model = client.hello()["articulations"] and client.model()
    assert model.nq == lab.model.nq and served.is_alive
    rng = np.random.default_rng(0)
    for number in range(1, 201):
        controls = rng.uniform(-1, 1, 2).tolist()
        reply = client.ask("step", per_articulation={"go": {"ctrl": controls}})
        assert reply["step"] == number == lab.snapshot.step
        for name in ("go", "go2"):
            member = reply["per_articulation"][name]
            start = lab.model.joint(f"{name}/root").qposadr[0]
            size = len(member["qpos"])
            assert member["qpos"] == lab.snapshot.qpos[start : start + size].tolist()
    assert reply["per_articulation"]["go"]["ctrl"] == controls


def test_the_process_is_light_and_nice(served):
    """Look at the process: it has no torch, and gives way to the lab."""
    pid = served.process.pid
    with open(f"/proc/{pid}/maps") as maps:
        assert "torch" not in maps.read()
    own, other = (os.getpriority(os.PRIO_PROCESS, each) for each in (0, pid))
    assert other > own or own == 19


def test_streams_and_targets_through_the_process(lab, served, context):
    """Publish controls, read the joint: it moves, and the other robot does not."""
    lab.modes.set("live")
    states = connect(context, served.ports["state"], zmq.SUB, b"go/joint/hip")
    control = connect(context, served.ports["control"], zmq.PUB)
    from manyworlds.plugins.urlab.streams import pack_control

    start = read_joint(states, b"go/joint/hip")

    def moved():
        control.send_multipart([b"go/control ", pack_control([(0, 3.0)])])
        return read_joint(states, b"go/joint/hip")[1] > start[1] + 0.05

    until(moved, "the joint does not move")
    assert lab["go2"].command.targets.tolist() == [0.0, 0.0]


def test_the_process_outlives_labs_and_rebuilds(lab, served, context):
    """Take the lab away, serve another one, rebuild it: one session goes on through all."""
    client = client_of(context, served)
    client.hello()
    served.attach(None)
    with pytest.raises(ReplyError) as caught:
        client.ask("step")
    assert caught.value.code == "no_active_manager"
    with LiveLab(two_robots(), LabCfg(mode="direct")) as other:
        served.attach(other)
        assert other["go"].owner == "net"
        assert client.ask("step", n_steps=7)["step"] == 7.0 == other.snapshot.step
        other.rebuild(lambda: world_from_scene(SceneCfg(entities={"go": entity(GO)})))
        reply = client.ask("step")
        assert set(reply["per_articulation"]) == {"go"} and reply["entities"] == {}
        assert np.size(reply["per_articulation"]["go"]["qpos"]) == other.model.nq
        served.attach(None)


def test_a_duplicate_is_served_by_the_process(lab, served, context):
    """Attach `go` and `go_1`, as *Duplicate* makes: our client drives, and the next lab is served.

    Only the model of URLab is refused, with the reason.
    """
    scene = SceneCfg(entities={"go": entity(GO), "go_1": entity(GO, (0.0, 1.0, 0.0))})
    with LiveLab(world_from_scene(scene), LabCfg(mode="direct")) as other:
        served.attach(other)
        with lab_client(f"tcp://127.0.0.1:{served.ports['step']}") as driver:
            driver.step(3, targets={"go_1": {"hip": 1.0}})
            assert np.array_equal(driver.data.qpos, other.snapshot.qpos)
            assert other.snapshot.ctrl.tolist() == [0.0, 0.0, 1.0, 0.0]
        client = client_of(context, served)
        with pytest.raises(ReplyError, match="cannot tell 'go' and 'go_1' apart"):
            client.hello()
        served.attach(lab)
        assert client.hello()["manager_present"]
    assert not any("failed" in text for text in served.reports)


def test_the_page_lets_the_driver_go(lab, served, context):
    """Take the world from the client that drives: it observes, and the mode is as before it."""
    lab.modes.set("live")
    client, watcher = client_of(context, served), client_of(context, served)
    client.hello(client="arm")
    client.ask("set_mode", mode="direct")
    watcher.hello()
    until(lambda: len(lab.call("read_server")["clients"]) == 2, "the clients are not told")
    status = lab.call("read_server")
    assert status["driver"].startswith("arm")
    assert {port["use"] for port in status["ports"]} >= {"step", "state"}
    assert status["requests"]["set_mode"] >= 1
    lab.call("release_client")
    until(lambda: lab.modes.mode == "live", "the mode is not as before")
    until(lambda: lab.call("read_server")["driver"] == "", "the client drives")
    assert "the page took the world" in lab.call("read_server")["events"][-1]
    watcher.ask("set_paused", paused=True)
    with pytest.raises(ReplyError) as caught:
        client.ask("step")
    assert caught.value.code == "session_expired"


def test_a_lab_without_a_server(lab):
    """Ask a lab that nobody serves: it says so."""
    assert lab.call("read_server")["ports"] == []
    with pytest.raises(ValueError, match="no server serves this world"):
        lab.call("release_client")


def test_ports_in_use_are_on_the_page(lab):
    """Start on a port in use: the holder is named in the status, until the port is free."""
    said: list[str] = []
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        cfg = LabServerCfg(**{**ANY, "state_port": holder.getsockname()[1]})
        with HubProcess(cfg, said.append) as process:
            process.attach(lab)
            assert f"state {cfg.state_port} (in use), " in process.greeting
            assert process.greeting.count("(in use)") == 1
            until(lambda: said, "the port in use is not told")
            assert f"in use by process {os.getpid()} (" in said[0]
            until(lambda: said[0] in lab.call("read_status")["failures"], "the page does not know")
            lab.step()
            holder.close()
            until(lambda: "is free and open now" in said[-1], "the port does not open")
            until(lambda: lab.call("read_status")["failures"] == [], "the page still has it")


@pytest.mark.slow
def test_several_ports_in_use_are_told_once():
    """Start on ports that another server has: one sentence names them all, and the remedy."""
    said: list[str] = []
    with HubProcess(LabServerCfg(**ANY)) as first:
        taken = {f"{use}_port": number for use, number in first.ports.items()}
        with HubProcess(LabServerCfg(**taken), said.append) as second:
            until(lambda: said, "the ports in use are not told")
            second.attach(None)
            [text] = said
            for use, number in first.ports.items():
                assert f"{use} {number}" in text
            assert "are in use by process" in text and "--port-shift 100" in text
            assert second.greeting.count("(in use)") == len(taken)


def kill(process: HubProcess) -> None:
    """Kill -9 the server."""
    os.kill(process.process.pid, signal.SIGKILL)


@pytest.mark.slow
def test_a_killed_server_is_started_again(lab, context, caplog):
    """Kill -9 the server while a client drives: the lab goes on, and is served at the same ports.

    Log and page say so; the mode is as before, the held velocity ends, owners stay, and the client
    that drove has no session.
    """
    lab.modes.set("live")
    process = HubProcess(LabServerCfg(**ANY))
    with contextlib.closing(process):
        process.attach(lab)
        ports, pid = process.ports, process.process.pid
        client = client_of(context, process)
        identity = client.hello()["lab_id"]
        client.ask("set_mode", mode="direct")
        walker = lab["go"].controller = Walker()
        lab["go2"].take("panel")
        client.ask("hold_twist", articulation="go", linear=[0.5, 0, 0], angular=[0, 0, 0])
        until(lambda: process.describe()["held"], "the held velocity is not told")
        with caplog.at_level(logging.WARNING):
            kill(process)
            until(lambda: "started again" in "".join(failures(lab)), "the page does not know")
        (sentence,) = failures(lab)
        assert "server for programs at port" in sentence and "SIGKILL" in sentence
        assert sentence in [record.getMessage() for record in caplog.records]
        assert lab.modes.mode == "live" and walker.twist == [0.0, 0.0, 0.0]
        assert process.ports == ports and process.process.pid != pid
        with pytest.raises(ReplyError, match="no such session") as caught:
            client.ask("step")
        assert caught.value.code == "session_expired"
        assert client.hello()["lab_id"] == identity and client.world["driver"]
        assert (lab["go"].owner, lab["go2"].owner) == ("net", "panel")
        step = lab.snapshot.step
        until(lambda: lab.snapshot.step > step + 10, "the lab stands still")
        process.attach(None)
        process.attach(lab)  # as a reload does
        assert lab["go2"].owner == "net"


def failures(lab) -> list[str]:
    """Return what the page says is wrong."""
    return lab.call("read_status")["failures"]


@pytest.mark.slow
def test_a_server_that_always_ends_is_given_up(lab, monkeypatch):
    """Kill -9 the server more often than it is started again: the page says so, the lab goes on."""
    monkeypatch.setattr("manyworlds.lab.server.process._MOST_RESTARTS", 1)
    monkeypatch.setattr("manyworlds.lab.server.process._RESTARTS_S", 1e6)
    process = HubProcess(LabServerCfg(**ANY))
    with contextlib.closing(process):
        process.attach(lab)
        kill(process)
        until(lambda: "started again" in "".join(failures(lab)), "it is not started again")
        kill(process)
        until(lambda: "not started again" in "".join(failures(lab)), "it is not given up")
        assert "ended 2 times" in failures(lab)[0]
        process.attach(None)
        process.attach(lab)
        lab.step()
        assert not process.is_alive


LAB = """
import sys
from manyworlds.lab import LabCfg, LiveLab
from manyworlds.lab.server import HubProcess, LabServerCfg
from tests.lab.server.conftest import two_robots
ports = {f"{use}_port": 0 for use in LabServerCfg().ports}
if __name__ == "__main__":
    process = HubProcess(LabServerCfg(**ports))
    lab = LiveLab(two_robots(), LabCfg())
    process.attach(lab)
    lab.start()
    print(process.process.pid, process.ports["step"], flush=True)
    sys.stdin.read()
    process.close()
"""


@pytest.mark.slow
@pytest.mark.parametrize("killed", [True, False])
def test_the_server_ends_with_its_lab(tmp_path, monkeypatch, killed):
    """Kill -9 a program with a lab, or let it close: its server ends, and leaves nothing behind."""
    monkeypatch.setenv("MANYWORLDS_REGISTRY", str(tmp_path))
    pipe = subprocess.PIPE
    lab = subprocess.Popen([sys.executable, "-c", LAB], stdin=pipe, stdout=pipe, text=True)
    assert lab.stdin is not None and lab.stdout is not None
    pid, port = map(int, lab.stdout.readline().split())
    until(lambda: find_publishers(tmp_path), "the world is not in the registry")
    with socket.create_connection(("127.0.0.1", port)):
        pass
    if killed:
        lab.kill()
    lab.stdin.close()
    assert lab.wait(PATIENCE_S) == (-signal.SIGKILL if killed else 0)
    until(lambda: not os.path.exists(f"/proc/{pid}"), "the server is left")
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
    assert not list(tmp_path.iterdir())


def test_stuck_clients_delay_nothing(lab, served, context):
    """Send requests without reading replies, and rubbish: other clients are served."""
    dealer = connect(context, served.ports["step"], zmq.DEALER)
    for _ in range(200):
        dealer.send_multipart([b"", b'{"op": "meta"}'])
    dealer.send_multipart([b"", b"\xff{rubbish"])
    client: Client = client_of(context, served)
    client.hello()
    for _ in range(50):
        client.ask("step")
    assert lab.snapshot.step == 50
