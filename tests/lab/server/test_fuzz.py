"""Hostile bytes: nothing fails, nothing hangs, nothing moves."""

from __future__ import annotations

import numpy as np
import pytest
import zmq

from manyworlds.lab import LabCfg, LiveLab, RecorderCfg
from manyworlds.lab.server import Dispatcher, HubProcess, LabServerCfg
from manyworlds.plugins.urlab.control_inbox import ControlInbox
from manyworlds.plugins.urlab.roster import RosterCache
from tests.lab.server.conftest import two_robots
from tests.lab.server.hostile import TARGETS, put_controls, send_requests, send_subscriptions
from tests.lab.server.hostile_keys import FAR, door_of, send_keyed
from tests.lab.server.test_hub import client_of
from tests.lab.server.waiting import ANY, until

FRAMES = 10_000
"""Number of frames; `python -m tools.fuzz_network` sends more."""
OVER_SOCKETS = 2_000


@pytest.fixture
def lab(tmp_path):
    """A paused lab of two robots, whose recordings lie in a folder."""
    cfg = LabCfg(mode="direct", start_owner="net", recorder=RecorderCfg(folder=tmp_path / "here"))
    with LiveLab(two_robots(), cfg) as lab:
        yield lab


def check_lab(lab, tmp_path) -> None:
    """Check that a lab works, and that nothing was written outside its folder."""
    assert {path.name for path in tmp_path.iterdir()} <= {"here"}
    lab.call("set_mode", mode="direct")
    lab.call("reset")
    before = lab.snapshot.step
    assert lab.call("step", n_steps=2)["step"] == before + 2


def test_hostile_requests(lab, tmp_path):
    """Send 10 000 hostile requests: each has a reply in time, counted; the server works after."""
    server = Dispatcher(lab)
    seen = send_requests(lambda frame: server.handle(frame, "a"), FRAMES, seed=0)
    counted = sum(server.errors.values()) + sum(server.requests.values())
    assert counted == FRAMES + 1 + seen["greetings"] and server.errors["bad_request"] > 1000
    assert sum(server.requests.values()) > 100
    server.close()
    check_lab(lab, tmp_path)


def test_hostile_controls(lab):
    """Send 10 000 hostile messages to the control port: none moves another actuator."""
    roster = RosterCache().get(lab)
    inbox = ControlInbox()
    put_controls(inbox, roster, FRAMES, seed=1)
    assert inbox.stats["messages"] == FRAMES
    for counter in ("malformed", "unknown_robot", "unknown_topic", "unknown_actuator", "control"):
        assert inbox.stats[counter] > 50, counter
    inbox.flush(lab)
    assert lab["go2"].command.targets.tolist() == [0.0, 0.0]
    assert np.isfinite(lab["go"].command.targets).all()
    inbox.put([b"go/control", TARGETS], roster)
    inbox.flush(lab)
    assert lab["go"].command.targets.tolist() == [0.25, -0.5]


@pytest.mark.slow
def test_hostile_peers_of_a_process(lab, tmp_path):
    """Send hostile requests and subscriptions to a server in its process: all goes on."""
    with HubProcess(LabServerCfg(**ANY)) as hub, zmq.Context() as context:
        hub.attach(lab)
        peer = client_of(context, hub)
        send_requests(peer.send, OVER_SOCKETS, seed=2)
        ports = [hub.ports[use] for use in ("state", "image", "info")]
        send_subscriptions(context, ports, OVER_SOCKETS, seed=3)
        client = client_of(context, hub)
        client.hello(role="takeover")
        client.ask("set_mode", mode="direct")
        assert client.ask("step")["step"] == lab.snapshot.step
        until(lambda: sum(hub.describe()["errors"].values()) > 500, "errors are not counted")
        assert not hub.describe()["problems"]
        assert not any("failed once" in text for text in hub.describe()["reports"])
        context.destroy(linger=0)
    check_lab(lab, tmp_path)


@pytest.mark.slow
def test_hostile_peers_of_encrypted_ports(lab, tmp_path):
    """Break handshakes, come as strangers, send wild frames with the key: others are served."""
    cfg = LabServerCfg(**ANY, listen=FAR, key_folder=tmp_path / "here" / "keys")
    with HubProcess(cfg) as hub, zmq.Context() as context:
        hub.attach(lab)
        door = door_of(hub)
        seen = send_keyed(context, door, OVER_SOCKETS, seed=4)
        assert seen["handshakes"] == OVER_SOCKETS // 20 and seen["bad_request"] > 100
        until(lambda: hub.describe()["refused_keys"], "refused keys are not counted")
        assert not hub.describe()["problems"] and not hub.reports
        client = client_of(context, hub)
        client.hello(role="takeover")
        client.ask("set_mode", mode="direct")
        assert client.ask("step")["step"] == lab.snapshot.step
        context.destroy(linger=0)
    check_lab(lab, tmp_path)
