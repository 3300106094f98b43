"""The lease of a client that drives: what keeps it, and what is an error after its loss."""

from __future__ import annotations

import contextlib
import logging
import signal
import threading

import numpy as np
import pytest

from manyworlds.lab import LabCfg, LiveLab
from manyworlds.lab.client import (
    BadValueError,
    LabConnectionError,
    LabEnv,
    SessionError,
    connect,
)
from manyworlds.lab.server import HubProcess, LabHub, LabServerCfg
from tests.lab.client.conftest import address
from tests.lab.server.conftest import two_robots
from tests.lab.server.waiting import ANY, WAIT_S, until

REQUESTS = {
    "step": lambda client: client.step(5),
    "verb that writes": lambda client: client.reset(),
    "targets": lambda client: client["go"].set_targets({"hip": 1.0}),
    "verb that reads": lambda client: client.read_status(),
    "snapshot": lambda client: client.snapshot,
    "operation": lambda client: client.network_status(),
}


class Clock:
    """Time that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    """Time of the server."""
    return Clock()


@pytest.fixture
def lab():
    """A lab in live mode."""
    with LiveLab(two_robots(), LabCfg()) as lab:
        yield lab


@contextlib.contextmanager
def serve(lab, clock=None, lab_id: str = "", **ports: int):
    """Serve a lab; its leases may be counted by a clock that the test sets."""
    with LabHub(LabServerCfg(**{**ANY, **ports}), lab_id=lab_id) as hub:
        if clock is not None:
            hub.dispatcher.lease = type(hub.dispatcher.lease)(clock)
        until(hub.is_open, "the ports are not open")
        hub.attach(lab)
        yield hub


def expire(hub: LabHub, clock: Clock) -> None:
    """Let a session be silent for too long, as a program in a debugger is."""
    driver = hub.dispatcher.sessions.driver
    with hub._lock:  # no heartbeat in between
        for _ in range(5):
            clock.now += 0.5
            hub.dispatcher.lease.look()
        hub.dispatcher.tick()
    assert hub.dispatcher.sessions.driver is not driver


@pytest.mark.parametrize("what", REQUESTS)
def test_a_lost_lease_is_an_error_until_it_is_taken_again(lab, clock, what):
    """Lose the lease: each request is an error, and nothing moves; `take_driver` drives again."""
    with serve(lab, clock) as hub, connect(address(hub)) as client:
        client.set_mode("direct")
        client.step(2)
        expire(hub, clock)
        until(lambda: lab.modes.mode == "live", "the mode is not as before")
        for _ in range(2):
            with pytest.raises(SessionError, match=r"lost the world at .*it was silent for 2 s"):
                REQUESTS[what](client)
            assert not client.is_driver and hub.dispatcher.sessions.driver is None
        assert lab["go"].command.targets.tolist() == [0.0, 0.0]
        assert client.take_driver() == ""
        assert client.is_driver and hub.dispatcher.sessions.driver is not None
        client.set_mode("direct")
        assert client.step(3)["step"] == lab.snapshot.step
        assert np.array_equal(client.data.qpos, lab.snapshot.qpos)


def test_states_end_with_the_lease(lab, clock):
    """Follow pushed states as the driver, and lose the lease: the iterator raises."""
    with serve(lab, clock) as hub, connect(address(hub)) as client:
        client.set_mode("direct")
        states = client.states(timeout=WAIT_S)
        next(states)
        expire(hub, clock)
        with pytest.raises(SessionError, match="lost the world"):
            for _ in states:
                pass


def test_an_observer_says_hello_again(lab, clock, caplog):
    """Expire an observer: its next reading request is answered, and the log says so."""
    with serve(lab, clock) as hub, connect(address(hub), role="observer") as client:
        client.read_status()
        expire_all(hub, clock)
        with caplog.at_level(logging.WARNING):
            assert client.read_status()["mode"] == "live"
        assert "Connected again" in caplog.text and "as an observer" in caplog.text
        assert client.connection.restarts == 1 and not client.is_driver
        expire_all(hub, clock)
        with pytest.raises(SessionError, match="observes in another one now"):
            client.step()
        assert hub.dispatcher.sessions.driver is None


def expire_all(hub: LabHub, clock: Clock) -> None:
    """End all sessions by silence."""
    with hub._lock:
        for _ in range(5):
            clock.now += 0.5
            hub.dispatcher.lease.look()
        hub.dispatcher.tick()
        assert len(hub.dispatcher.sessions) == 0


@pytest.mark.parametrize("role", ["driver", "observer"])
@pytest.mark.parametrize("what", REQUESTS)
def test_another_lab_at_the_port_is_an_error(lab, role, what):
    """Let another lab take the port: no request of the old client reaches it, ever."""
    with LiveLab(two_robots(), LabCfg(mode="direct")) as other:
        with serve(lab) as hub:
            port = hub.ports["step"]
            client = connect(address(hub), role=role)
            assert client["go"].name == "go"
        with serve(other, step_port=port) as hub, contextlib.closing(client):
            for _ in range(2):
                with pytest.raises(SessionError, match=r"another lab answers at .* connect\(\)"):
                    REQUESTS[what](client)
            with pytest.raises(SessionError, match="another lab"):
                client.take_driver()
            assert other.snapshot.step == 0 and len(hub.dispatcher.sessions) == 0
            with connect(str(port)) as fresh:
                assert fresh.is_driver and fresh.step(2)["step"] == 2


@pytest.mark.slow
def test_a_server_that_is_started_again_is_the_same_lab(lab):
    """Restart the server of the same lab: the driver is told, and drives again on demand."""
    with serve(lab, lab_id="a") as hub:
        port = hub.ports["step"]
        client = connect(address(hub), patience=WAIT_S)
        watcher = connect(address(hub), role="observer", patience=WAIT_S)
        client.set_mode("direct")
        data = client.data
    with serve(lab, lab_id="a", step_port=port):
        with pytest.raises(SessionError, match="lost the world at .*: there is no such session"):
            client.step()
        assert watcher.read_status()["mode"] == lab.modes.mode  # says hello again
        client.take_driver()
        client.set_mode("direct")
        client.step()
        assert client.data is data and data.time == lab.snapshot.time
    for left in (client, watcher):
        left.connection.patience = 0.3
        with pytest.raises(LabConnectionError, match=r"No lab answers at .* for 0\.3 s: start one"):
            left.read_status()
        left.close()


def test_a_lost_connection_is_no_lost_session(lab, clock):
    """Cut the connection between two requests: the session goes on, and drives."""
    with serve(lab, clock) as hub, connect(address(hub)) as client:
        client.set_mode("direct")
        before = client.connection._session
        client.connection._drop()
        client.step(2)
        assert client.connection._session == before and client.connection.restarts == 0
        assert client.is_driver and lab.modes.mode == "direct"


def test_a_client_that_has_the_number_of_a_lost_connection(lab, clock):
    """Lose the driver's connection, and greet from the same place: the driver keeps its session."""
    with serve(lab, clock) as hub:
        sessions = hub.dispatcher.sessions
        driver = connect(address(hub))
        peer = sessions.driver.peer
        hub.disconnected(peer)  # as the monitor of the socket tells it
        with hub._lock:
            hub.dispatcher.handle(b'{"op": "hello", "include_model": false}', peer)
        driver.set_mode("direct")
        driver.step(2)
        driver.close()


def test_another_mode_is_an_error(lab):
    """Let the page change the mode: steps are errors until the client chooses a mode."""
    with serve(lab) as hub, connect(address(hub)) as client:
        client.set_mode("direct")
        client.step(2)
        lab.call("set_mode", mode="live")
        for _ in range(2):
            with pytest.raises(BadValueError, match="in the mode 'direct', and .* to 'live'"):
                client.step(5)
        client.read_status()
        client.set_mode("direct")
        step = lab.snapshot.step
        assert client.step(5)["step"] == step + 5
        lab.call("set_mode", mode="live")
        client.set_mode("live")
        client.step(1)


def test_the_page_takes_the_world(lab):
    """Take the world from the client: its next write is an error, and does not take it back."""
    with serve(lab) as hub, connect(address(hub)) as client:
        client.set_mode("direct")
        lab.call("release_client")
        until(lambda: lab.modes.mode == "live", "the mode is not as before")
        with pytest.raises(SessionError, match="the page took the world: take_driver"):
            client.step()
        assert hub.dispatcher.sessions.driver is None
        client.take_driver()
        client.set_mode("direct")
        client.step()


def test_long_requests_keep_the_lease(lab, clock, monkeypatch):
    """Step for 40 s, read for 40 s as another client: the driver keeps the world.

    Its heartbeats wait meanwhile, and are read when it is over.
    """
    call, reading, free = lab.call, threading.Event(), threading.Event()

    def slowly(verb: str, **fields):
        if verb == "step":
            clock.now += 40.0
        if verb == "list_states":
            clock.now += 40.0
            reading.set()
            assert free.wait(WAIT_S)
            clock.now += 40.0
        return call(verb, **fields)

    monkeypatch.setattr(lab, "call", slowly)
    with serve(lab, clock) as hub, connect(address(hub)) as client:
        client.set_mode("direct")
        for number in (1, 2, 3):
            client.step(2)
            hub.tick()
            assert client.is_driver and lab.snapshot.step >= 2 * number
        with connect(address(hub), role="observer") as other:
            reader = threading.Thread(target=other.list_states)
            reader.start()
            assert reading.wait(WAIT_S)
            waiting = threading.Thread(target=client.step)
            waiting.start()
            free.set()
            reader.join(WAIT_S)
            waiting.join(WAIT_S)
        step = lab.snapshot.step
        assert client.step(2)["step"] == step + 2 and client.connection.restarts == 0


def test_the_environment_is_left_after_a_loss(clock):
    """Lose the lease of a task: its step is an error, and closing it is none."""
    from manyworlds.envs import ManagerBasedRlEnv
    from tests.lab.client.test_lab_env import task_cfg

    env = ManagerBasedRlEnv(task_cfg("Cartpole-Balance"), device="cpu")
    with LiveLab.driven_by(env) as lab, serve(lab, clock) as hub:
        task = LabEnv(address(hub))
        task.reset(seed=1)
        expire(hub, clock)
        with pytest.raises(SessionError, match="step_task: .* lost the world"):
            task.step(task.action_space.sample())
        task.close()
        with LabEnv(address(hub)) as again:
            again.reset(seed=1)
            expire(hub, clock)  # not noticed before the end


@pytest.mark.slow
def test_a_killed_server_is_found_again():
    """Kill -9 the server's process: the driver is told, then drives the same lab again."""
    with (
        LiveLab(two_robots(), LabCfg()) as lab,
        contextlib.closing(HubProcess(LabServerCfg(**ANY))) as hub,
    ):
        hub.attach(lab)
        with (
            connect(address(hub), patience=WAIT_S) as client,
            connect(address(hub), role="observer", patience=WAIT_S) as watcher,
        ):
            client.set_mode("direct")
            client.step(2)
            process = hub.process
            process.send_signal(signal.SIGKILL)
            process.wait()
            for _ in range(2):
                with pytest.raises(SessionError, match="lost the world"):
                    client.step(2)
            until(lambda: lab.modes.mode == "live", "the mode is not as before")
            assert watcher.read_status()["mode"] == "live"
            client.take_driver()
            client.set_mode("direct")
            step = lab.snapshot.step
            assert client.step(2)["step"] == step + 2
