"""A client reads, drives and follows a live world over sockets."""

from __future__ import annotations

import copy
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import pytest

from manyworlds.lab import LabCfg, LiveLab, world_from_file, world_from_scene
from manyworlds.lab.client import (
    BadRequestError,
    BadValueError,
    FileError,
    LabConnectionError,
    LabTimeoutError,
    LabVersionError,
    NotOwnerError,
    NotReadyError,
    SessionError,
    UnknownNameError,
    connect,
)
from manyworlds.lab.client.snapshot_stream import SnapshotStream
from manyworlds.lab.server import LabHub, LabServerCfg
from manyworlds.scene import SceneCfg
from tests.lab.client.conftest import address, serve
from tests.lab.server.conftest import GO, entity, two_robots
from tests.lab.server.waiting import ANY, until
from tests.waiting import PATIENCE_S


def test_data_follow_each_step(client, lab):
    """Step with targets and forces: state is the lab's, and what follows is MuJoCo's own."""
    data, model = client.data, client.model
    for count in range(1, 20):
        client.step(count % 3 + 1, targets={"go": {"hip": 2.0}}, wrenches={"box/box": [9.0] * 6})
        assert client.data is data and data.time == lab.snapshot.time
        for name in ("qpos", "qvel", "act", "ctrl", "sensordata", "qacc", "actuator_force"):
            assert np.array_equal(getattr(data, name), getattr(lab.snapshot, name)), name
    local = mujoco.MjData(lab.model)
    state = mujoco.mjtState.mjSTATE_PHYSICS
    values = np.empty(mujoco.mj_stateSize(model, state))
    mujoco.mj_getState(model, data, values, state)
    mujoco.mj_setState(lab.model, local, values, state)
    mujoco.mj_forward(lab.model, local)
    assert np.array_equal(data.xpos, local.xpos) and np.array_equal(data.cvel, local.cvel)


def test_the_model_is_the_lab_s(client, lab):
    """Compare all arrays and names with the lab's; change gravity: the copy follows in place."""
    model = client.model
    assert model.names == lab.model.names
    for name in dir(model):
        value = getattr(model, name)
        if isinstance(value, np.ndarray) and name != "_sizes":
            assert np.array_equal(value, getattr(lab.model, name)), name
    client.set_sim_options({"gravity": [0, 0, -3.0]})
    assert client.model is model and model.opt.gravity[2] == -3.0
    lab.post(lambda m, d: m.body_mass.__setitem__(1, 7.0)).result(PATIENCE_S)
    assert client.snapshot.model_version == lab.snapshot.model_version
    assert model.body_mass[1] == 7.0
    client.set_sim_options({"gravity": [0, 0, -9.81]})


def test_a_world_that_runs_is_followed(client, lab):
    """Let the world run: each look at the snapshot brings the data up to it."""
    client.set_mode("live")
    data = client.data
    times = []
    until(lambda: times.append(client.snapshot.time) or times[-1] > times[0] + 0.05, "it stands")
    assert data.time == times[-1]
    client.set_mode("direct")


def test_states_are_pushed(client, lab, monkeypatch):
    """Follow a world that runs without requests; a slow program gets the newest state."""
    client.set_mode("live")
    data, states = client.data, client.states(timeout=PATIENCE_S)
    next(states)
    known = next(states).frame_id
    monkeypatch.setattr(client, "_fetch", lambda: client._copy.snapshot)
    for _ in range(20):
        snapshot = next(states)
        assert snapshot.frame_id > known and data.time == snapshot.time
        assert np.array_equal(data.qpos, snapshot.qpos)
        known = snapshot.frame_id
    monkeypatch.undo()
    before = lab.snapshot.frame_id
    until(lambda: lab.snapshot.frame_id > before + 100, "it stands")
    assert next(states).frame_id > before + 20, "states of long ago"
    client.set_mode("direct")
    last = client.step(3)["frame_id"]
    for snapshot in client.states(timeout=PATIENCE_S):
        assert (snapshot.block == lab.snapshot.block).all() and snapshot.frame_id >= last
        if snapshot.step > 5:
            break
        client.step()  # its reply has the state that is pushed, too
    with pytest.raises(LabTimeoutError, match="no new state for 0.1 s"):
        list(client.states(timeout=0.1))


def test_a_push_that_is_missed_is_asked_for(client, monkeypatch):
    """Lose all pushes, as those before the subscription: each state comes all the same."""
    monkeypatch.setattr(SnapshotStream, "wait", lambda self, seconds: None)
    states = client.states(timeout=PATIENCE_S)
    next(states)
    for _ in range(3):
        stepped = client.step()
        assert next(states).frame_id == stepped["frame_id"]


def test_robots_and_their_elements(client, lab):
    """Find elements by name, with and without the prefix: names, ids and values are MuJoCo's."""
    go = client["go2"]
    assert go.joints == ("root", "hip", "knee") and go.bodies == ("base", "leg", "foot")
    assert go.actuators == ("hip", "lag") and go.sensors == ("gyro", "angle")
    go.set_targets({"hip": 3.0})
    client.step(5)
    hip = go.joint("hip")
    assert hip == go.joint("go2/hip") or hip.name == "go2/hip"
    assert hip.id == lab.model.joint("go2/hip").id and hip.model.damping == 0.5
    address_of = lab.model.joint("go2/hip").qposadr[0]
    assert hip.data.qpos[0] == lab.snapshot.qpos[address_of] != 0.0
    assert go.actuator("hip").data.ctrl[0] == 3.0
    assert go.sensor("angle").data.data.shape == (1,) and go.body("foot").data.xpos.shape == (3,)
    assert go.geom("sole").id == lab.model.geom("go2/sole").id
    assert go.site("imu").data.xpos.shape == (3,)


def test_models_of_others():
    """Drive a model of gymnasium, whose actuators have no names: the state is the lab's."""
    file = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / "pusher_v5.xml"
    with (
        LiveLab(world_from_file(file), LabCfg(mode="direct")) as lab,
        serve(lab) as hub,
        connect(address(hub)) as client,
    ):
        (name,) = client.robots
        arm = client[name]
        client.step(5, targets={name: dict.fromkeys(arm.actuators, 0.3)})
        assert len(arm.actuators) == lab.model.nu and lab.snapshot.ctrl.tolist() == [0.3] * 7
        assert arm.actuator(arm.actuators[2]).id == 2
        assert arm.actuator(arm.actuators[2]).data.ctrl[0] == 0.3
        assert np.array_equal(arm.joint_pos, lab.snapshot.qpos.astype(np.float32))


@pytest.mark.parametrize(
    ("wrong", "kind", "text"),
    [
        (lambda c: c["go3"], UnknownNameError, "no robot 'go3' (there is go, go2, box); did you"),
        (lambda c: c["go"].joint("hop"), UnknownNameError, "no joint 'hop'; did you mean 'hip'?"),
        (lambda c: c["go"].set_targets({"hop": 1.0}), BadValueError, "hop"),
        (
            lambda c: c.step(targets={"box": {"lid": 1.0}}),
            UnknownNameError,
            "a key of targets must be a robot with actuators, and 'box' has none: push its bodies",
        ),
        (
            lambda c: c.call("take_robot", robot="box", owner="me"),
            UnknownNameError,
            "robot must be a robot with actuators, and 'box' has none",
        ),
        (lambda c: c.set_mocap_pose("go/foot"), UnknownNameError, "must be a mocap body"),
        (lambda c: c.read_robot("go22"), UnknownNameError, "did you mean 'go2'"),
        (lambda c: c.capture_camera("front"), UnknownNameError, "front"),
        (lambda c: c.set_sim_speed(1.0), BadValueError, "from 5 to 1000"),
        (lambda c: c.set_qpos("go", [1.0, 2.0]), BadValueError, "got 2"),
        (lambda c: c.set_qpos("go", [np.nan] * 12), BadValueError, "nan"),
        (lambda c: c.call("fly"), BadRequestError, "There is no verb 'fly'"),
        (lambda c: c.call("step", n=1), BadRequestError, "no field 'n'"),
        (lambda c: c.call("set_paused"), BadRequestError, "needs 'paused'"),
        (
            lambda c: c.call("set_paused", paused=object()),
            BadValueError,
            "of type object",
        ),
        (lambda c: c.run_policy("/tmp/policy.onnx"), FileError, "in the lab's own process"),
        (lambda c: c.restore_state("nothing"), UnknownNameError, "nothing"),
    ],
)
def test_mistakes_are_typed(client, lab, wrong, kind, text):
    """Make a mistake: its class and its sentence say which one; the world stays as it was."""
    before = lab.snapshot.step
    with pytest.raises(kind, match=r"\S") as caught:
        wrong(client)
    assert text in str(caught.value), str(caught.value)
    assert lab.snapshot.step == before


def test_other_owners_are_told(client, lab):
    """Write targets of a robot that the page controls: the error names the remedy."""
    lab["go"].take("panel")
    with pytest.raises(NotOwnerError, match=r"'panel' controls 'go'.*take_robot\('go', 'net'\)"):
        client["go"].set_targets({"hip": 1.0})
    client.take_robot("go", "net")
    client["go"].set_targets({"hip": 1.0})
    assert client.step(targets={"go": [0.5, 0.0]})["ignored"] == {}


def test_one_drives_and_others_observe(client, hub):
    """Connect twice: the second one reads, is refused, takes over, and gives the world back."""
    with connect(address(hub), role="observer", name="second") as second:
        assert client.is_driver and not second.is_driver
        assert second.data.time == client.data.time and second.robots == client.robots
        with pytest.raises(SessionError, match="test .* drives this world"):
            second.step()
        assert second.take_driver().startswith("test")
        second.step()
        with pytest.raises(SessionError, match="second"):
            client.step()
        assert not client.is_driver
        second.release_driver()
        client.take_driver()
        client.step()
    with connect(address(hub), role="takeover") as third:
        assert third.is_driver
        names = [session["name"] for session in third.network_status()["sessions"]]
        assert any(name.startswith("test") for name in names) and len(names) == 2
    client.take_driver()


def test_leaving_gives_the_mode_back(lab, hub):
    """Change the mode by a verb and leave: the world is in the mode of before, and free."""
    lab.modes.set("live")
    with connect(address(hub)) as client:
        client.set_mode("direct")
        assert lab.modes.mode == "direct"
    assert lab.modes.mode == "live" and hub.dispatcher.sessions.driver is None
    client.close()
    with pytest.raises(LabConnectionError, match="this client is closed"):
        client.step()
    lab.modes.set("direct")


SCRIPT = """
import sys, time
from manyworlds.lab.client import connect
client = connect(sys.argv[1])
client.set_mode("direct")
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.slow
def test_a_killed_client_loses_the_world(lab, hub):
    """Kill -9 an idle client that drives: until then it keeps the world, then it is lost in 3 s."""
    lab.modes.set("live")
    command = [sys.executable, "-c", SCRIPT, address(hub)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        time.sleep(2.5)  # longer than a session lives without heartbeats
        assert hub.dispatcher.sessions.driver is not None and lab.modes.mode == "direct"
        process.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        until(lambda: hub.dispatcher.sessions.driver is None, "the driver is not lost")
        assert time.monotonic() - killed < 3.0
    until(lambda: lab.modes.mode == "live", "the mode is not as before")
    lab.modes.set("direct")


def test_nobody_answers():
    """Connect to a port where nothing listens, and to one that is no lab: one sentence each."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(LabConnectionError, match=r"No lab answers .*manyworlds lab TARGET"):
            connect(str(port), patience=0.3)
    with pytest.raises(LabConnectionError, match="No lab answers"):
        connect(f"tcp://127.0.0.1:{port}", patience=0.3)


def test_a_slow_lab_is_an_error(client, lab):
    """Hold the world for longer than the timeout: the error says so, and the client goes on."""
    client.connection.timeout = 0.2
    with lab.lock(), pytest.raises(LabTimeoutError, match=r"did not answer within 0\.2 s"):
        client.step()
    client.connection.timeout = 10.0
    until(lambda: client.step()["step"] == lab.snapshot.step, "no step")


def test_rebuilds_replace_the_model():
    """Rebuild the world with one robot less: model, data and robots are the new ones."""
    with (
        LiveLab(two_robots(), LabCfg(mode="direct")) as lab,
        serve(lab) as hub,
        connect(address(hub)) as client,
    ):
        before, old = client.model, client["go"]
        client.step(10)
        lab.rebuild(lambda: world_from_scene(SceneCfg(entities={"go": entity(GO)})))
        client.step()
        assert client.model is not before and client.model.nq == lab.model.nq
        assert np.array_equal(client.data.qpos, lab.snapshot.qpos)
        assert list(client.robots) == ["go"] and client["go"] is not old


def test_another_version_of_mujoco(client, hub, monkeypatch):
    """Claim another version: the model comes as XML with a warning, or the error names both."""
    monkeypatch.setattr(mujoco, "mj_versionString", lambda: "4.9.9")
    hub_version = copy.copy(client.connection.greeting["mujoco_version"])
    with connect(address(hub), role="observer") as other:
        other.connection.greeting["mujoco_version"] = hub_version
        with pytest.warns(UserWarning, match=f"The lab has MuJoCo {hub_version}.*4.9.9.*XML"):
            model = other.model
        assert model.nq == client.model.nq and model.joint("go/hip").id == 1
        assert other["go"].joints == client["go"].joints
        assert np.array_equal(other.data.qpos, client.snapshot.qpos)
    with connect(address(hub), role="observer") as other:
        other.connection.greeting["mujoco_version"] = hub_version
        monkeypatch.setattr(mujoco.MjModel, "from_xml_string", _refuse)
        with pytest.raises(LabVersionError, match=rf"{hub_version}.*4\.9\.9.*pip|install"):
            _ = other.model


def _refuse(*_):
    raise ValueError("no XML")


def test_recordings_and_states(client, lab, folder):
    """Record, save a state, go on, and return to it: files are the lab's, states are exact."""
    client.recording_start("a.mcap")
    client.step(7)
    client.capture_state("here")
    qpos = client.data.qpos.copy()
    client.step(20, targets={"go": {"hip": 4.0}})
    assert not np.array_equal(client.data.qpos, qpos)
    client.restore_state("here")
    assert np.array_equal(client.data.qpos, qpos)
    assert client.recording_stop()["frame_count"] >= 27
    content = client.recording_export("a.mcap")["content"]
    assert isinstance(content, bytes) and content == (folder / "a.mcap").read_bytes()
    assert os.listdir(folder)


def test_a_world_that_loads_is_waited_for():
    """Connect before the lab has a world: the first request waits for it, or says so."""
    with (
        LabHub(LabServerCfg(**ANY)) as hub,
        LiveLab(two_robots(), LabCfg(mode="direct")) as lab,
    ):
        until(hub.is_open, "the ports are not open")
        with connect(address(hub), patience=0.2) as hasty:
            with pytest.raises(NotReadyError, match="There is no world at present"):
                hasty.step()
            hasty.release_driver()
            with connect(address(hub), patience=60.0) as client:
                later = threading.Timer(0.3, hub.attach, (lab,))
                later.start()
                client.step(3)
                assert lab.snapshot.step == 3 and client.model.nq == lab.model.nq
                later.join()
        hub.attach(None)


def test_states_wait_for_another_world(lab, hub):
    """Take the world away while states are followed: they wait, and follow it when it is back."""
    try:
        with connect(address(hub), patience=0.1) as client:
            endless, patient = client.states(), client.states(timeout=1.0)
            next(endless)
            next(patient)
            hub.attach(None)
            with pytest.raises(LabTimeoutError, match="no new state for 1 s"):
                next(patient)
            later = threading.Timer(0.5, lambda: (hub.attach(lab), lab.step()))
            later.start()
            assert next(endless).frame_id > 0
            later.join()
            endless.close()
    finally:
        hub.attach(lab)
