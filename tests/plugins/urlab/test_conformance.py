"""A client written from the protocol alone works with the lab."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import time
from collections.abc import Callable

import msgpack
import mujoco
import numpy as np
import pytest
import zmq

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.lab import (
    Controller,
    LabCfg,
    LiveLab,
    PdController,
    world_from_spec,
)
from manyworlds.lab.server import Dispatcher, LabHub, LabServerCfg
from manyworlds.lab.world.gallery import GALLERY
from manyworlds.tasks import load_env_cfg
from tests.lab.server.all_operations import OPERATIONS
from tests.lab.server.client import Client, ReplyError
from tests.lab.server.waiting import ANY, until

HELLO = bytes.fromhex(
    "83a26f70a568656c6c6faa73657373696f6e5f6964c0ac6f62736572766174696f6e73a87374616e64617264"
)
ERA_B = {
    *("hello", "meta", "step", "reset", "forward", "set_mode", "set_paused", "set_sim_speed"),
    *("set_control_source", "set_twist", "set_qpos", "set_mocap_pose", "read_mocap_pose"),
    *("get_contacts", "list_keyframes", "configure_controller", "set_sim_options"),
    *("recording_start", "recording_stop", "recording_save", "recording_clear", "replay_load"),
    *("replay_list_sessions", "replay_set_active", "replay_start", "replay_stop"),
    *("begin_pie", "stop_pie", "pie_status"),
    *("capture_state", "restore_state", "list_states", "drop_state"),
}


@pytest.fixture
def server(lab):
    """The dispatcher of the lab."""
    return Dispatcher(lab)


@pytest.fixture(params=["in-process", "socket", "process"])
def client(request, lab):
    """A client that has said hello: in the lab's process, over a socket, and over another process.

    The last one answers from snapshots in shared memory.
    """
    if request.param == "in-process":
        server = Dispatcher(lab)
        yield greeted(lambda request: server.handle(request, "a"))
        return
    with contextlib.ExitStack() as stack:
        if request.param == "socket":
            hub = stack.enter_context(LabHub(LabServerCfg(**ANY)))
            hub.attach(lab)
            until(hub.is_open, "the ports are not open")
        else:
            hub = request.getfixturevalue("server_process")
            hub.attach(lab)
            stack.callback(hub.attach, None)
        context = stack.enter_context(zmq.Context())
        peer = context.socket(zmq.REQ)
        peer.setsockopt(zmq.RCVTIMEO, 30_000)
        peer.connect(f"tcp://127.0.0.1:{hub.ports['step']}")

        def send(message: bytes) -> bytes:
            peer.send(message)
            return peer.recv()

        yield greeted(send)
        peer.close(linger=0)


def greeted(send: Callable[[bytes], bytes]) -> Client:
    """Return a client that has said hello."""
    client = Client(send)
    client.hello()
    return client


def joints_of(model, prefix):
    """Find the joints of a robot as old clients do, by the beginning of their names."""
    return [i for i in range(model.njnt) if model.joint(i).name.startswith(f"{prefix}_")]


def slices_of(model, prefix):
    """Return the places of a robot's positions, velocities and controls, as old clients do."""
    widths = {0: (7, 6), 1: (4, 3), 2: (1, 1), 3: (1, 1)}
    qpos, qvel = [], []
    for joint in joints_of(model, prefix):
        q, v = widths[int(model.jnt_type[joint])]
        qpos += range(model.jnt_qposadr[joint], model.jnt_qposadr[joint] + q)
        qvel += range(model.jnt_dofadr[joint], model.jnt_dofadr[joint] + v)
    ctrl = [i for i in range(model.nu) if model.actuator(i).name.startswith(f"{prefix}_")]
    return qpos, qvel, ctrl


def test_all_operations_of_the_protocol_exist():
    """Look for each of the protocol's operations."""
    assert set(OPERATIONS) >= ERA_B


def test_the_greeting(server, lab):
    """Send the recorded bytes of a greeting: everything that a client needs is in the reply."""
    reply = msgpack.unpackb(server.handle(HELLO, "a"))
    assert reply["op"] == "hello_ok" and reply["mujoco_version"] == mujoco.__version__
    assert reply["mujoco_version_int"] == float(mujoco.mj_version())
    assert isinstance(reply["entities"], dict) and reply["global_cameras"] == {}
    assert [robot["prefix"] for robot in reply["articulations"]] == ["go", "go2"]
    assert reply["mjb_size"] == len(reply["mjb"])
    assert base64.b64decode(reply["mjb_base64"]) == reply["mjb"]
    assert hashlib.sha256(reply["mjcf"].encode()).hexdigest() == reply["mjcf_sha256"]
    box = reply["entities"]["box"]
    q = lab.model.joint("box/free").qposadr[0]
    assert box["has_free_base"] and box["qpos_offset"] == q
    assert box["id"] == lab.model.body("box/box").id
    go = reply["articulations"][0]
    assert go["actuator_types"] == {"hip": "motor", "lag": "cylinder"}
    assert go["original_names"]["joints"]["go_hip"] == "hip" and go["default_control_mode"]


def test_the_model_is_the_lab_s_with_names_of_clients(client, lab):
    """Load the model: all fields are equal to the last bit, names have `_` after the robot."""
    model = client.model()
    for name in dir(model):
        value = getattr(model, name)
        if isinstance(value, np.ndarray) and not name.startswith("name") and name != "_sizes":
            assert np.array_equal(value, getattr(lab.model, name)), name
    names = [lab.model.joint(i).name for i in range(model.njnt)]
    assert [model.joint(i).name for i in range(model.njnt)] == [n.replace("/", "_") for n in names]
    assert joints_of(model, "go") == [i for i, n in enumerate(names) if n.startswith("go/")]
    compiled = mujoco.MjModel.from_xml_string(client.world["mjcf"])
    assert compiled.nq == model.nq
    assert {compiled.joint(i).name for i in range(model.njnt)} == {
        model.joint(i).name for i in range(model.njnt)
    }


def test_a_thousand_direct_steps_are_those_of_mujoco(client, lab):
    """Step with controls that change: each state equals `mj_step` on the received model."""
    model = client.model()
    data = mujoco.MjData(model)
    client.ask("set_mode", mode="direct")
    state = client.ask("reset")["per_articulation"]
    before = lab.snapshot.step
    places = {prefix: slices_of(model, prefix) for prefix in ("go", "go2")}
    data.qpos[:], data.qvel[:] = lab.snapshot.qpos, lab.snapshot.qvel
    mujoco.mj_forward(model, data)
    for prefix, (qpos, _, ctrl) in places.items():
        assert state[prefix]["qpos"] == data.qpos[qpos].tolist()
        assert len(state[prefix]["ctrl"]) == len(state[prefix]["act"]) == len(ctrl) == 2
    rng = np.random.default_rng(0)
    for i in range(1000):
        send = {}
        for prefix, (_, _, ctrl) in places.items():
            values = rng.uniform(-2.0, 2.0, 2)
            data.ctrl[ctrl] = values
            send[prefix] = {"ctrl": values.tolist()}
        mujoco.mj_step(model, data)
        reply = client.ask("step", n_steps=1, per_articulation=send)
        assert reply["step"] == before + i + 1.0 and reply["time"] == data.time
        for prefix, (qpos, qvel, _) in places.items():
            robot = reply["per_articulation"][prefix]
            assert robot["qpos"] == data.qpos[qpos].tolist()
            assert robot["qvel"] == data.qvel[qvel].tolist()
            assert robot["act"] == [0.0, data.act[0 if prefix == "go" else 1]]
    assert reply["entities"]["box"]["qpos"] == data.qpos[-7:].tolist()


def test_levels_of_observation(client):
    """Ask for each level: it has the fields that it should, until another one is asked for."""
    keys = {"qpos", "qvel"}
    assert set(client.ask("step", observations="minimal")["per_articulation"]["go"]) == keys
    assert set(client.ask("step")["per_articulation"]["go"]) == keys
    keys |= {"ctrl", "act", "sensors"}
    reply = client.ask("step", observations="standard")["per_articulation"]["go"]
    assert set(reply) == keys and set(reply["sensors"]) == {"gyro", "angle"}
    reply = client.ask("step", observations="full")["per_articulation"]["go"]
    assert set(reply) == keys | {"bodies", "actuator_force"}
    assert set(reply["bodies"]) == {"base", "leg", "foot"} and len(reply["actuator_force"]) == 2


def test_names_as_well_as_arrays(client, lab):
    """Send controls by short and full names, over an array: names win."""
    client.ask(
        "step",
        per_articulation={"go2": {"ctrl": [1.0, 2.0], "ctrl_map": {"go2_hip": 3.0, "lag": 4.0}}},
    )
    assert lab["go2"].command.targets.tolist() == [3.0, 4.0]


def test_a_wrench_lasts_for_its_steps_only(client, lab):
    """Push a body in one request: the force is there in all of its steps, then gone."""
    client.ask("step", n_steps=5)
    before = client.ask("capture_state")["snapshot_id"]
    free = client.ask("step", n_steps=10)["per_articulation"]["go"]["qvel"]
    client.ask("restore_state", snapshot_id=before)
    push = {"go": {"xfrc_applied": {"base": [0, 30.0, 0, 0, 0, 0]}}}
    pushed = client.ask("step", n_steps=10, per_articulation=push)["per_articulation"]["go"]["qvel"]
    mass = lab.model.body_subtreemass[lab.model.body("go/base").id]
    gained = 30.0 / mass * 10 * lab.model.opt.timestep
    assert pushed[1] - free[1] == pytest.approx(gained, rel=0.2)
    assert not lab.snapshot.xfrc_applied.any()
    client.ask("step")
    assert not lab.snapshot.xfrc_applied.any()


def test_states_that_are_shown(client, lab):
    """Send a state: it is shown as it is, and nothing is integrated."""
    assert client.ask("set_mode", mode="puppet")["current_mode"] == "puppet"
    qpos, qvel = lab.snapshot.qpos.copy(), lab.snapshot.qvel.copy()
    qpos[7] = 0.3
    state = {"qpos": qpos.tolist(), "qvel": qvel.tolist(), "time": 4.0}
    for _ in range(2):
        reply = client.ask("step", mode="puppet", **state)
        assert reply["time"] == 4.0 and reply["per_articulation"]["go"]["qpos"][7] == 0.3
        assert np.array_equal(lab.snapshot.qpos, qpos) and reply["mode"] == "puppet"
    assert client.ask("set_mode", mode="live")["previous_mode"] == "puppet"
    assert lab.loop.mode == "live" and lab.snapshot.stepper == "physics"


def test_a_pull_is_told_to_who_integrates(client, lab):
    """Pull a body on the page while a client shows its own states: the reply has the force."""
    client.ask("set_mode", mode="puppet")
    fields = {"qpos": lab.snapshot.qpos.tolist(), "qvel": lab.snapshot.qvel.tolist(), "time": 0.0}
    assert "perturbation" not in client.ask("step", mode="puppet", **fields)
    body = lab.model.body("go/base").id
    point = lab.snapshot.xpos[body]
    lab.call("grab_body", body=body, point=point)
    lab.call("pull_body", target=[*point[:2], point[2] + 1.0])
    pull = client.ask("step", mode="puppet", **fields)["perturbation"]
    assert pull["body_id"] == body and pull["xfrc"][2] > 0.0 and pull["version"] > 0
    model = client.model()  # with it, the client's own integrator feels the pull
    speeds = []
    for force in (np.zeros(6), pull["xfrc"]):
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = fields["qpos"], fields["qvel"]
        data.xfrc_applied[int(pull["body_id"])] = force
        mujoco.mj_step(model, data)
        speeds.append(data.qvel[2])
    mass = model.body_subtreemass[body]
    gained = pull["xfrc"][2] / mass * model.opt.timestep
    assert speeds[1] - speeds[0] == pytest.approx(gained, rel=0.2)
    lab.call("release_body")
    assert "perturbation" not in client.ask("step", mode="puppet", **fields)


def test_live_steps_stage_targets(client, lab):
    """Step in a live world: targets are set, the present state comes back, nothing else steps."""
    client.ask("set_mode", mode="live")
    client.ask("set_paused", paused=True)
    step = lab.snapshot.step
    reply = client.ask("step", n_steps=50, per_articulation={"go": {"ctrl": [0.5, 0.0]}})
    assert reply["step"] == step == lab.snapshot.step
    assert lab["go"].command.targets.tolist() == [0.5, 0.0] and reply["ignored"] == {}
    lab["go"].take("panel")
    reply = client.ask("step", per_articulation={"go": {"ctrl": [0.7, 0.0]}})
    assert reply["ignored"] == {"go": "panel"}
    assert lab["go"].command.targets.tolist() == [0.5, 0.0]


def test_resets(client, lab):
    """Reset with joint positions: they are there, and the rest is at its start."""
    client.ask("step", n_steps=30)
    reply = client.ask("reset", per_articulation_qpos={"go": {"hip": 0.3, "go_knee": [0, 1, 0, 0]}})
    assert reply["time"] == 0.0
    assert reply["per_articulation"]["go"]["qpos"][7:] == [0.3, 0.0, 1.0, 0.0, 0.0]
    assert reply["per_articulation"]["go2"]["qpos"][7:] == [0.0, 1.0, 0.0, 0.0, 0.0]
    keyframes = client.ask("list_keyframes")["keyframes"]
    model = client.model()
    assert [key["name"] for key in keyframes] == [model.key(i).name for i in range(model.nkey)]
    assert np.array_equal([key["qpos"] for key in keyframes], model.key_qpos)
    assert client.ask("reset", keyframe_name=keyframes[0]["name"])["time"] == 0.0
    assert np.array_equal(lab.snapshot.qpos, keyframes[0]["qpos"])


def test_forward_reads_what_was_written(client, lab):
    """Move a joint by hand: after `forward`, bodies and sensors are where MuJoCo has them."""
    client.ask("step", n_steps=5)
    qpos = [0.0, 0.0, 2.0, 1.0, 0.0, 0.0, 0.0, 0.7, 1.0, 0.0, 0.0, 0.0]
    client.ask("set_qpos", target="go", qpos=qpos, still=True)
    reply = client.ask("forward")["per_articulation"]["go"]
    data = mujoco.MjData(lab.model)
    data.qpos[:], data.qvel[:], data.act[:] = (
        lab.snapshot.qpos,
        lab.snapshot.qvel,
        lab.snapshot.act,
    )
    mujoco.mj_forward(lab.model, data)
    assert reply["qpos"] == qpos and reply["sensors"]["angle"] == [0.7]
    foot = lab.model.body("go/foot").id
    assert np.array_equal(lab.snapshot.xpos[foot], data.xpos[foot])


def test_forward_changes_no_step(client, lab):
    """Compute in between: the next steps are the same bit for bit."""
    client.ask("step", n_steps=50)
    saved = client.ask("capture_state", label="a")
    assert saved["snapshot_id"] == saved["label"] == "a" and saved["time"] == lab.snapshot.time
    straight = client.ask("step", n_steps=20)["per_articulation"]
    restored = client.ask("restore_state", snapshot_id="a")
    assert restored["time"] == saved["time"]
    assert "entities" not in client.ask("forward")
    assert client.ask("step", n_steps=20)["per_articulation"] == straight
    assert client.ask("list_states")["snapshots"] == ["a"]
    client.ask("drop_state", snapshot_id="a")
    assert client.ask("list_states")["snapshots"] == []


def test_teleports(client, lab):
    """Move a robot by its joints, by its base alone, and a box by its id."""
    reply = client.ask("set_qpos", target="go", qpos=[0, 0, 2, 1, 0, 0, 0])
    assert reply["free_base_shortcut"] and reply["actor_name"] == "go"
    assert lab.snapshot.qpos[2] == 2.0
    reply = client.ask("set_qpos", target="go", qpos=[0, 0, 1, 1, 0, 0, 0, 0.5, 1, 0, 0, 0])
    assert not reply["free_base_shortcut"] and lab.snapshot.qpos[7] == 0.5
    box = client.world["entities"]["box"]["actor_id"]
    client.ask("step", n_steps=20)
    reply = client.ask(
        "set_qpos", target=box, target_by="actor_id", qpos=[3, 0, 1, 1, 0, 0, 0], still=True
    )
    assert reply["actor_name"] == "box" and lab.snapshot.qpos[-7] == 3.0
    assert reply["actor_id"] == box
    assert not lab.snapshot.qvel[-6:].any()
    go = client.world["articulations"][0]["actor_id"]
    base = [0, 0, 3, 1, 0, 0, 0]
    assert client.ask("set_qpos", target=go, target_by="actor_id", qpos=base)["actor_name"] == "go"


def test_contacts(client, lab):
    """Let the box rest: its contact forces carry its weight; filters and bounds are obeyed."""
    client.ask("step", n_steps=2000)
    found = client.ask("get_contacts", filter={"body1": "box_box", "geom2": "floor"})
    weight = 2.0 * 9.81
    assert found["n_contacts"] == len(found["contacts"]) > 0 and not found["truncated"]
    assert sum(c["force"][0] for c in found["contacts"]) == pytest.approx(weight, rel=0.01)
    assert {c["body1"] for c in found["contacts"]} | {c["body2"] for c in found["contacts"]} == {
        "box_box",
        "world",
    }
    one = client.ask("get_contacts", max_contacts=1)
    assert one["truncated"] and len(one["contacts"]) == 1
    below = client.ask("get_contacts", filter={"subtree": "go_base"})
    assert 0 < below["n_contacts"] < one["n_contacts"]


def test_speeds_and_options(client, lab):
    """Set speed and options: speed is clamped to the bounds, options come back whole."""
    assert client.ask("set_sim_speed", percent=1)["percent"] == 5.0
    assert client.ask("set_sim_speed", percent=200)["percent"] == 200.0
    flags = int(mujoco.mjtDisableBit.mjDSBL_WARMSTART | mujoco.mjtDisableBit.mjDSBL_FILTERPARENT)
    wanted = {
        "timestep": 0.004,
        "gravity": [0, 0, -1],
        "solver": int(mujoco.mjtSolver.mjSOL_CG),
        "iterations": 33,
        "disableflags": flags,
    }
    own = {"enable_multiccd": False, "enable_sleep": True, "num_worker_threads": 2}
    options = client.ask("set_sim_options", options=own)["options"]
    assert {name: options.pop(name) for name in own} == own
    assert lab.loop.num_threads == 2 <= 1 + options.pop("max_worker_threads")
    assert lab.model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_SLEEP
    for name, wrong in {"enable_sleep": 1, "num_worker_threads": -1, "iterations": 0.5}.items():
        with pytest.raises(ReplyError, match=name):
            client.ask("set_sim_options", options={"density": 7.0, name: wrong})
    assert lab.model.opt.density == 0.0
    client.ask("set_sim_options", options={"enable_sleep": False, "num_worker_threads": 0})
    options = client.ask("set_sim_options", options=wanted)["options"]
    assert {name: options[name] for name in wanted} == wanted
    assert not options.pop("num_worker_threads") and options.pop("max_worker_threads") > 0
    assert options.pop("enable_multiccd") and not options.pop("enable_sleep")  # bits of the flags
    for name, value in options.items():
        assert np.array_equal(getattr(lab.model.opt, name), value), name
    client.hello()
    assert client.model().opt.timestep == 0.004 and client.model().opt.disableflags == flags


def test_names_of_options(client, lab):
    """Name the integrator, the cone and the solver as MJCF or MuJoCo's enums do."""
    wanted = {"integrator": "implicitfast", "cone": "Elliptic", "solver": "mjSOL_CG"}
    options = client.ask("set_sim_options", options={**wanted, "iterations": 7})["options"]
    assert options["iterations"] == 7.0
    assert {name: options[name] for name in wanted} == wanted
    opt = lab.model.opt
    assert opt.integrator == mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    assert opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC
    assert opt.solver == mujoco.mjtSolver.mjSOL_CG
    with pytest.raises(ReplyError, match="one of euler, rk4, implicit, implicitfast"):
        client.ask("set_sim_options", options={"integrator": "semi"})


@pytest.mark.slow
def test_pauses_and_fast_forward(client, lab):
    """Pause, and run at twice the speed: the world stands, and the factor told is honest."""
    client.ask("set_mode", mode="live")
    assert client.ask("set_paused", paused=True)["paused"]
    step = lab.snapshot.step
    time.sleep(0.1)
    assert lab.snapshot.step == step and lab.paused
    client.ask("set_sim_speed", percent=200)
    assert not client.ask("set_paused", paused=False)["paused"]

    def is_honest() -> bool:
        start, since = lab.snapshot.time, time.monotonic()
        time.sleep(1.5)  # more than the second over which the factor is taken
        reached = (lab.snapshot.time - start) / (time.monotonic() - since)
        told = client.ask("read_status")["real_time_factor"]
        return told == pytest.approx(reached, rel=0.15) and reached > 1.2

    until(is_honest, "the world is slow, or the factor told is another one")


def test_control_sources(client, lab):
    """Give one robot to the page, then all: the one that was set by itself stays."""
    reply = client.ask("set_control_source", source="ui", articulation="go")
    assert reply["scope"] == "articulation" and lab["go"].owner == "panel"
    assert client.ask("set_control_source", source="ui")["scope"] == "global"
    assert lab["go2"].owner == "panel"
    client.ask("set_control_source", source="zmq")
    assert (lab["go"].owner, lab["go2"].owner) == ("panel", "net")


def test_gains(client, lab):
    """Set gains by joint and for all others: the reply has them all, with their schema."""
    lab["go"].controller = PdController(lab.model, lab["go"].actuators)
    params = {"kp": {"hip": 30.0}, "default_torque_limit": 9.0}
    reply = client.ask("configure_controller", articulation="go", params=params)["params"]
    assert reply["kp"] == {"hip": 30.0, "lag": 100.0}
    assert set(reply["torque_limit"].values()) == {9.0} and reply["kv"]["hip"] == 5.0
    client.hello()
    (go, go2) = client.world["articulations"]
    assert go["controller"]["schema"]["kp"]["type"] == "per_joint" and "controller" not in go2


def test_recordings(client, lab):
    """Record, save, load and play: the protocol's whole sequence."""
    assert client.ask("recording_start", max_duration_s=10)["name"].endswith(".mcap")
    client.ask("step", n_steps=20)
    stopped = client.ask("recording_stop")
    assert stopped["frame_count"] == 20
    path = client.ask("recording_save", path="/elsewhere/../swing.json")["absolute_path"]
    assert path.endswith("/swing.json") and "elsewhere" not in path
    assert client.ask("replay_load", path="swing.json")["name"] == "swing.json"
    assert "swing.json" in client.ask("replay_list_sessions")["sessions"]
    client.ask("replay_set_active", name="swing.json")
    played = client.ask("replay_start", loop=True)
    assert played["total_frames"] == 20 and played["active_session"] == "swing.json"
    client.ask("step", n_steps=3)
    client.ask("replay_stop")
    client.ask("recording_clear")
    assert client.ask("step", n_steps=3)["mode"] == "direct"


def test_names_of_recordings(client, lab):
    """Record twice under one name, and load the path that saving returned."""
    names = []
    for _ in range(2):
        names.append(client.ask("recording_start", name="run")["name"])
        client.ask("step", n_steps=4)
        client.ask("recording_stop")
    assert names == ["run.mcap", "run_1.mcap"]
    path = client.ask("recording_save", path="swing.csv")["absolute_path"]
    assert client.ask("replay_load", path=path)["name"] == "swing.csv"
    assert client.ask("replay_start")["total_frames"] == 4
    client.ask("replay_stop")


def test_starting_scripts(client, lab):
    """Do as published scripts: start the world, ask for its state, stop it."""
    lab.pause()
    reply = client.ask("begin_pie", timeout_s=30.0)
    assert reply["state"] == "ready" and reply["compile_error"] == "" and not lab.paused
    payload = reply["handshake_payload"]
    assert payload["op"] == "hello_ok" and payload["session_id"] == client.session_id
    assert client.ask("pie_status")["state"] == "ready"
    client.ask("stop_pie")
    assert lab.paused and client.ask("pie_status")["state"] == "off"


def test_a_script_waits_for_the_world(lab):
    """Start the world while none is loaded: the reply comes with it, or says that none came."""
    with LabHub(LabServerCfg(**ANY)) as hub, zmq.Context() as context:
        until(hub.is_open, "the ports are not open")
        peer = context.socket(zmq.REQ)
        peer.setsockopt(zmq.RCVTIMEO, 30_000)
        peer.connect(f"tcp://127.0.0.1:{hub.ports['step']}")

        def send(message: bytes) -> bytes:
            peer.send(message)
            return peer.recv()

        client = Client(send)
        assert not client.hello()["manager_present"]
        with pytest.raises(ReplyError, match="no world was loaded within 0.1 s"):
            client.ask("begin_pie", timeout_s=0.1)
        request = {"op": "begin_pie", "session_id": client.session_id, "timeout_s": 60.0}
        peer.send(msgpack.packb(request))
        assert not peer.poll(100)
        hub.attach(lab)
        reply = msgpack.unpackb(peer.recv())
        assert reply["state"] == "ready"
        assert [robot["prefix"] for robot in reply["handshake_payload"]["articulations"]]
        hub.attach(None)
        peer.close(linger=0)


def test_drawings(client, lab):
    """Draw by the names that scripts use: the lab has the shapes until they are cleared."""
    client.ask("draw_marker", position=[1, 2, 3], radius=0.2, color=[1, 0, 0, 0.5], name="goal")
    client.ask("draw_line", start=[0, 0, 0], end=[1, 0, 0], duration=60.0)
    client.ask("draw_arrow", start=[0, 0, 0], to=[0, 0, 1])
    client.ask("draw_box", pos=[0, 0, 1], size=[1.0, 2.0, 3.0], quat=[0, 1, 0, 0])
    client.ask("draw_axes", location=[0, 0, 1])
    client.ask("set_overlay_text", text="first")
    client.ask("set_overlay_text", text="second", color=[0, 1, 0])
    shapes = client.ask("read_drawings")["shapes"]
    kinds = [shape["kind"] for shape in shapes.values()]
    assert kinds == ["marker", "line", "arrow", "box", "axes", "text"]
    goal = shapes["goal"]
    assert (goal["points"], goal["size"]) == ([[1.0, 2.0, 3.0]], [0.2])
    assert goal["color"] == [1.0, 0.0, 0.0]
    assert shapes["overlay"]["text"] == "second"
    with pytest.raises(ReplyError, match="draw_line needs start and end"):
        client.ask("draw_line", start=[0, 0, 0])
    client.ask("set_overlay_text")
    assert "overlay" not in client.ask("read_drawings")["shapes"]
    client.ask("clear_markers")
    assert client.ask("read_drawings")["shapes"] == {}


@pytest.mark.parametrize("name", GALLERY)
def test_worlds_of_the_gallery_are_stepped(name):
    """Send each articulation its mode and controls, as an old client does in each step."""
    with LiveLab(GALLERY[name].world(), LabCfg(mode="direct", start_owner="net")) as lab:
        server = Dispatcher(lab)
        client = greeted(lambda request: server.handle(request, "a"))
        send = {}
        for robot in client.world["articulations"]:
            ctrl = [0.0] * len(robot["actuator_types"])
            send[robot["prefix"]] = {"ctrl": ctrl, "control_mode": robot["default_control_mode"]}
        assert send
        assert client.ask("step", n_steps=3, per_articulation=send)["step"] == 3.0


SLASHES = """<mujoco><worldbody><body name="a/base"><geom size=".1"/>
    <body name="a/leg/left" pos="0 0 .5"><joint name="a/hip/left" axis="0 1 0"/><geom size=".1"/>
    </body></body></worldbody>
    <actuator><motor name="a/hip motor" joint="a/hip/left"/></actuator></mujoco>"""


@pytest.mark.parametrize("joint", ["hip/left", "hip_left", "a_hip_left", "a/hip/left"])
def test_names_of_the_robot_s_own_file(joint):
    """Name a joint as its file, the protocol or the lab does: all of them mean this joint."""
    spec = mujoco.MjSpec.from_string(SLASHES)
    with LiveLab(world_from_spec(spec, robots={"a": "a/"}), LabCfg(mode="direct")) as lab:
        lab["a"].controller = PdController(lab.model, lab["a"].actuators)
        server = Dispatcher(lab)
        client = greeted(lambda request: server.handle(request, "a"))
        (robot,) = client.world["articulations"]
        assert robot["original_names"]["joints"] == {"a_hip_left": "hip/left"}
        reply = client.ask("reset", per_articulation_qpos={"a": {joint: 0.4}})
        assert reply["per_articulation"]["a"]["qpos"] == [0.4]
        params = {"kp": {joint: 30.0}}
        reply = client.ask("configure_controller", articulation="a", params=params)
        assert reply["params"]["kp"] == {"hip motor": 30.0}


def test_the_catalogue(client, lab):
    """Call what the catalogue announces and the old client does not know, by its description."""
    ops = {entry["name"]: entry for entry in client.ask("meta")["ops"]}
    assert set(ops) == set(OPERATIONS)
    assert ops["step"]["category"] == "manager_required" and ops["step"]["namespace"] == "runtime"
    assert ops["capture_state"]["reply_fields"] == [
        "snapshot_id:string",
        "label:string",
        "time:float",
    ]
    assert ops["set_mocap_pose"]["required_fields"] == ["body"]
    assert client.ask("read_status")["robots"]["go"]["owner"] == "net"
    result = client.ask("call_verb", verb="list_keyframes", fields={"robot": "go"})["result"]
    assert result["keyframes"] == ["init_state"]


def test_json_sessions(server, lab):
    """Send plain text: replies are text, bytes are base64 in keys of their own."""
    client = Client(lambda request: server.handle(request, "j"), "json")
    reply = client.hello()
    assert "mjb" not in reply
    blob = base64.b64decode(reply["mjb__b64__"])
    assert mujoco.MjModel.from_binary_path("m", {"m": blob}).nq == lab.model.nq
    assert client.ask("step", n_steps=3)["step"] == 3.0
    packed = server.handle(b' {"op": "hello"}', "k")
    assert msgpack.unpackb(packed)["op"] == "hello_ok"  # without `encoding`: msgpack
    content = client.ask("export_state", label=client.ask("capture_state")["label"])
    assert base64.b64decode(content["content__b64__"])[:2] == b"PK"
    again = {"content__b64__": content["content__b64__"]}
    assert client.ask("import_state", **again)["label"] == "1"


def test_numbers_are_doubles(client):
    """Read the raw bytes of a reply: whole numbers are float64, too."""
    request = {"op": "step", "session_id": client.session_id, "n_steps": 21}
    raw = client.send(msgpack.packb(request))
    assert b"\xa4step\xcb" + bytes.fromhex("4035000000000000") in raw
    assert json.dumps(msgpack.unpackb(raw))


def test_without_a_world(server, lab):
    """Take the world away and give it back: greetings say so, sessions stay."""
    client = Client(lambda request: server.handle(request, "a"))
    client.hello()
    server.attach(None)
    with pytest.raises(ReplyError) as caught:
        client.ask("step")
    assert caught.value.code == "no_active_manager"
    reply = Client(lambda request: server.handle(request, "b")).hello()
    assert not reply["manager_present"] and reply["articulations"] == [] and "mjb" not in reply
    server.attach(lab)
    assert client.ask("step")["step"] == lab.snapshot.step


class Walker(Controller):
    """Control law that takes a velocity, and makes it its controls."""

    name = "walker"
    owner = "policy"

    def __init__(self) -> None:
        self.commands = {"twist": np.zeros((1, 3)), "height": np.zeros(1)}

    def compute(self, model, data, target):
        """Return the controls."""
        return self.commands["twist"][0, :2]


def test_velocities(client, lab):
    """Set a velocity: the policy's command changes, and what is left out stays."""
    law = lab["go"].controller = Walker()
    reply = client.ask("set_twist", articulation="go", linear=[0.4, 0.1, 0.0])
    assert reply["articulation"] == "go" and reply["linear"] == [0.4, 0.1, 0.0]
    reply = client.ask("set_twist", articulation="go", angular=[0.0, 0.0, 0.5])
    assert law.commands["twist"].tolist() == [[0.4, 0.1, 0.5]]
    state = client.ask("step")["per_articulation"]
    assert state["go"]["twist"] == {"linear": [0.4, 0.1, 0.0], "angular": [0.0, 0.0, 0.5]}
    assert state["go"]["ctrl"] == [0.4, 0.1] and "twist" not in state["go2"]
    law.commands["twist"][:] = 0.25  # not by a verb
    state = client.ask("step")["per_articulation"]
    assert state["go"]["twist"] == {"linear": [0.25, 0.25, 0.0], "angular": [0.0, 0.0, 0.25]}


def test_seeds():
    """Reset a task's world with a seed: the same one gives the same random start."""
    cfg = load_env_cfg("Cartpole-Balance", play=True)
    cfg.scene.num_envs = 1
    env = ManagerBasedRlEnv(cfg, device="cpu")
    with LiveLab.driven_by(env, cfg=LabCfg(mode="direct")) as lab:
        server = Dispatcher(lab)
        client = Client(lambda request: server.handle(request, "a"))
        client.hello()
        (prefix,) = (robot["prefix"] for robot in client.world["articulations"])
        starts = []
        for seed in (3, 4, 3):
            reply = client.ask("reset", seed=seed)
            starts.append(reply["per_articulation"][prefix]["qpos"])
        assert starts[0] == starts[2] != starts[1]
