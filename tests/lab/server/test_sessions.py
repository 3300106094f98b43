"""Leases of sessions: when they end, and what a client is told."""

from __future__ import annotations

import pytest

from manyworlds.lab.server import Dispatcher, LabHub, LabServerCfg
from manyworlds.lab.server.sessions import LeaseClock
from tests.lab.server.client import Client, ReplyError
from tests.lab.server.test_dispatcher import Clock, connect, error_of
from tests.lab.server.waiting import ANY


@pytest.fixture
def clock():
    """The server's time."""
    return Clock()


@pytest.fixture
def server(lab, clock):
    """A dispatcher of the lab whose verbs take the time that `slow` says."""
    return Dispatcher(lab, clock=clock)


@pytest.fixture
def slow(lab, clock, monkeypatch):
    """Time that each verb takes [s], by name."""
    times: dict[str, float] = {}
    call = lab.call

    def wait(verb: str, **fields):
        clock.now += times.get(verb, 0.0)
        return call(verb, **fields)

    monkeypatch.setattr(lab, "call", wait)
    return times


def test_a_long_request_of_its_own(server, slow):
    """Step for a minute: the lease counts from the answer, and ends 2 s after it."""
    slow["step"] = 60.0
    client = connect(server, heartbeats=True)
    for _ in range(3):
        client.ask("step")
        server.tick()
        assert server.sessions.driver is not None


def test_the_lease_ends_after_the_answer(server, slow, clock):
    """Fall silent after a long step: the session ends within 2 s, and its reason is told."""
    slow["step"] = 60.0
    client = connect(server, heartbeats=True)
    client.ask("step")
    clock.now += 1.8
    server.tick()
    assert server.sessions.driver is not None
    clock.now += 0.3
    server.tick()
    assert server.sessions.driver is None
    error = error_of(client, "step")
    assert error.code == "session_expired"
    assert str(error) == (
        "step: the session ended, because it was silent for 2 s: send hello first."
    )


def test_long_requests_of_others(server, slow):
    """Let others read for a minute, one after another: the driver's heartbeats wait, it stays."""
    slow["list_states"] = 60.0
    client = connect(server, "a", heartbeats=True)
    others = [connect(server, f"b{i}", role="observer") for i in range(5)]
    for _ in range(3):
        for other in others:
            other.ask("list_states")
            server.tick()
        client.ask("heartbeat")
    assert server.sessions.driver is not None and client.ask("heartbeat")["driver"]


def test_a_busy_server_still_ends_sessions(server, slow):
    """Let another client ask all the time: a driver that was killed is lost after 2 s."""
    slow["read_status"] = 0.0625
    connect(server, "a", heartbeats=True)
    other = connect(server, "b", role="observer")
    for number in range(33):
        assert (server.sessions.driver is None) is False, number
        other.ask("read_status")
        server.tick()
    assert server.sessions.driver is None


def test_a_server_that_stood_still(lab, clock):
    """Stop the server's process for a minute: the messages that wait are read before leases end."""
    hub = LabHub(LabServerCfg(**ANY))
    hub.attach(lab)
    hub.dispatcher.lease = LeaseClock(clock)
    client = Client(lambda request: hub.answer(request, "a"))
    client.hello(heartbeats=True, include_model=False)
    for _ in range(3):
        hub.tick()
        clock.now += 60.0
        hub.tick()
        assert hub.dispatcher.sessions.driver is not None
        client.ask("heartbeat")
    for _ in range(21):
        clock.now += 0.1
        hub.tick()
    assert hub.dispatcher.sessions.driver is None
    hub.stop()


def test_the_clock_of_leases(clock):
    """Read the clock inside and outside of requests: it never goes back, and counts a part."""
    lease = LeaseClock(clock)
    clock.now = 1.0
    assert lease() == 1.0
    with lease.answering():
        clock.now += 0.05
        assert lease() == 1.05
        clock.now += 10.0
        assert lease() == pytest.approx(1.1)
    assert lease() == pytest.approx(1.1)
    clock.now += 1.0
    assert lease() == pytest.approx(2.1)


def test_a_loss_is_told_once(server):
    """Release the driver as the page does: its next write is refused, the one after that drives."""
    client = connect(server)
    server.sessions.release(server.sessions.driver, "the page took the world")
    client.ask("read_status")
    error = error_of(client, "step")
    assert error.code == "session_expired" and "the page took the world" in str(error)
    client.ask("step")
    assert server.sessions.driver is not None
    client.ask("release_driver")
    client.ask("step")  # it has released the world by itself


def test_a_takeover_that_has_ended_is_told(server):
    """Let another client take the world and leave: the first one is told before it drives again."""
    client, other = connect(server, "a"), connect(server, "b", client="arm", role="takeover")
    other.ask("close_session")
    assert "arm" in str(error_of(client, "step"))
    client.ask("step")


@pytest.mark.parametrize("op", ["step", "call_verb", "step_task"])
def test_another_mode_is_refused(server, lab, op):
    """Change the mode beside the client: its steps are refused until it sets a mode."""
    fields = {"verb": "step"} if op == "call_verb" else {}
    if op == "step_task":
        fields = {"action": [0.0]}
    client = connect(server)
    lab.modes.set("live")
    for _ in range(2):
        error = error_of(client, op, **fields)
        assert error.code == "bad_mode"
        assert "in the mode 'direct', and somebody else has changed it to 'live'" in str(error)
    client.ask("read_status")
    client.ask("set_mode", mode="live")
    if op != "step_task":
        client.ask(op, **fields)
    client.ask("set_mode", mode="direct")
    if op != "step_task":
        client.ask(op, **fields)


def test_the_mode_is_that_when_it_began_to_drive(server, lab):
    """Observe while the mode changes, then drive: the present mode is the known one."""
    client = connect(server, role="observer")
    lab.modes.set("live")
    client.ask("step")  # nobody drives
    lab.modes.set("direct")
    assert error_of(client, "step").code == "bad_mode"
    client.ask("take_driver")
    client.ask("step")


def test_requests_for_another_lab_are_refused(lab):
    """Send the id of another lab with any request: nothing is done, and no session begins."""
    server = Dispatcher(lab, lab_id="a")
    client = connect(server)
    assert client.world["lab_id"] == "a" != Dispatcher(None).lab_id
    client.ask("step", lab_id="a")
    for op in ("step", "hello", "meta", "call_verb", "read_status", "take_driver"):
        error = error_of(client, op, lab_id="b", **({"verb": "step"} if op == "call_verb" else {}))
        assert error.code == "another_lab", op
    assert lab.snapshot.step == 1 and len(server.sessions) == 1


def test_a_lost_connection_leaves_its_number_to_others(server):
    """Lose the connection of a session with heartbeats: a greeting from its number ends nothing."""
    client = connect(server, "a", heartbeats=True)
    server.disconnected("a")
    other = connect(server, "a")
    assert not other.world["driver"]
    client.ask("step")
    with pytest.raises(ReplyError):
        other.ask("step")
