"""Dispatcher: errors, sessions, who drives, limits."""

from __future__ import annotations

import json
import math
import re
import threading

import msgpack
import numpy as np
import pytest

from manyworlds.lab import LabCfg, LiveLab
from manyworlds.lab.server import Dispatcher, LabServerCfg, Limits
from manyworlds.lab.server.operations import LOCAL
from manyworlds.lab.verbs import VERBS
from manyworlds.plugins.urlab.plugin import EDITOR, plugin_of
from tests.lab.server.all_operations import OPERATIONS
from tests.lab.server.client import Client, ReplyError
from tests.lab.server.conftest import two_robots
from tests.waiting import PATIENCE_S


class Clock:
    """Time that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    """The dispatcher's time."""
    return Clock()


@pytest.fixture
def server(lab, clock):
    """The dispatcher of the lab."""
    return Dispatcher(lab, clock=clock)


def connect(server, peer="a", **fields) -> Client:
    """Say hello over a connection."""
    client = Client(lambda request: server.handle(request, peer))
    client.hello(**fields)
    return client


def error_of(client, op, **fields) -> ReplyError:
    """Return the error frame of a request, whose message is one sentence."""
    with pytest.raises(ReplyError) as caught:
        client.ask(op, **fields)
    text = str(caught.value)
    assert "\n" not in text and text.endswith((".", "?")), text
    return caught.value


WRONG = (
    ("", {}, "missing_op", "no field 'op'"),
    ("fly", {}, "unknown_op", "no operation 'fly'"),
    ("qqqq", {}, "unknown_op", "no operation 'qqqq'."),
    ("rset", {}, "unknown_op", "did you mean 'reset'"),
    ("spawn_actor", {"blueprint": "x"}, "not_in_editor", "add_item"),
    ("set_viewport_mode", {}, "not_in_editor", "add_item"),
    ("set_paused", {}, "missing_field", r"set_paused needs 'paused'"),
    ("set_paused", {"paused": 2}, "bad_value", "must be true or false, got 2"),
    ("set_mode", {"mode": "fly"}, "bad_mode", "live, direct, puppet or auto"),
    ("set_mode", {"mode": None}, "missing_field", "set_mode needs 'mode'"),
    ("step", {"mode": "puppet"}, "bad_mode", "see set_mode"),
    ("step", {"n_steps": math.nan}, "bad_value", "a whole number"),
    ("step", {"include_cameras": 3}, "bad_value", "must be true, or a map"),
    ("step", {"observations": "all"}, "bad_value", "one of minimal, standard, full"),
    ("step", {"per_articulation": {"goo": {}}}, "unknown_articulation", "did you mean 'go'"),
    ("step", {"per_articulation": {"go": 1}}, "bad_value", "must be a map"),
    ("step", {"per_articulation": {"go": {"ctrl": [1]}}}, "dim_mismatch", "2 controls, got 1"),
    ("step", {"per_articulation": {"go": {"ctrl": [1, math.nan]}}}, "bad_value", "finite"),
    ("step", {"per_articulation": {"go": {"ctrl_map": {"x": 1}}}}, "bad_value", "actuator 'x'"),
    ("step", {"per_articulation": {"go": {"ctrl_map": 1}}}, "bad_value", "map of numbers"),
    ("step", {"per_articulation": {"go": {"xfrc_applied": 3}}}, "bad_value", "must be a map"),
    ("step", {"per_articulation": {"go": {"xfrc_applied": {"x": [0] * 6}}}}, "unknown_body", "x"),
    ("step", {"per_articulation": {"go": {"xfrc_applied": {"leg": [0]}}}}, "bad_value", "6 finite"),
    ("step", {"per_articulation": {"go": {"control_mode": "x"}}}, "bad_value", "raw or"),
    ("reset", {"keyframe_name": "x"}, "unknown_keyframe", "no keyframe 'x'"),
    ("reset", {"per_articulation_qpos": {"go": {"x": 1}}}, "no_joints", "no joint 'x'"),
    ("reset", {"per_articulation_qpos": {"go": {"hip": [1, 2]}}}, "dim_mismatch", "1 positions"),
    ("reset", {"per_articulation_qpos": {"x": {}}}, "unknown_articulation", "no articulation 'x'"),
    ("reset", {"seed": -1}, "bad_value", "from 0"),
    ("set_qpos", {"target": "x", "qpos": [1]}, "unknown_articulation", "no actor_name 'x'"),
    ("set_qpos", {"target": "go", "qpos": [1]}, "dim_mismatch", "has 12 or 7 positions, got 1"),
    ("set_mocap_pose", {"body": "go_base"}, "not_mocap_body", "must be a mocap body"),
    ("read_mocap_pose", {"body": "x"}, "unknown_body", "must be the name of a body"),
    ("get_contacts", {"filter": {"body1": "x"}}, "unknown_body", "the name of a body, got"),
    ("get_contacts", {"max_contacts": -1}, "bad_value", "from 0"),
    ("set_twist", {"articulation": "go"}, "no_twist_controller", "takes a velocity"),
    ("set_twist", {"articulation": "x"}, "unknown_articulation", "no articulation"),
    ("configure_controller", {"articulation": "go", "params": {}}, "no_controller", "no PD law"),
    (
        "configure_controller",
        {"articulation": "go", "params": {"kp": 1}},
        "controller_schema_violation",
        "kp must be a map",
    ),
    ("set_control_source", {"source": "x"}, "bad_value", "one of zmq, ui"),
    ("set_sim_options", {"options": {"timestep": -1}}, "bad_value", "above 0 s"),
    ("recording_stop", {}, "recording_not_active", "nothing is recorded"),
    ("recording_save", {"path": "x.txt"}, "path_not_writable", "not a valid name"),
    ("recording_save", {"path": "../../x.csv"}, "path_not_writable", "no frames"),
    ("replay_load", {"path": "../x.exe"}, "path_not_readable", "not a valid name"),
    ("replay_load", {"path": "x.csv"}, "path_not_readable", "no recording"),
    ("replay_set_active", {"name": "x"}, "replay_session_not_found", "no recording 'x'"),
    ("replay_pause", {}, "not_ready", "Nothing is played"),
    ("restore_state", {"snapshot_id": "x"}, "unknown_state", "name of a state"),
    ("call_verb", {"verb": "fly"}, "unknown_op", "no verb 'fly'"),
    ("call_verb", {"verb": "run_policy"}, "path_not_readable", "in the lab's own process"),
    ("run_policy", {"path": "/etc/passwd"}, "unknown_op", "run_policy"),
    ("call_verb", {"verb": "step", "fields": {"x": 1}}, "bad_request", "no field 'x'"),
    (
        "call_verb",
        {"verb": "step", "fields": {"wrenches": {"go/legs": [0] * 6}}},
        "unknown_body",
        "step: the body of a wrench must be the name of a body",
    ),
    (
        "call_verb",
        {"verb": "step", "fields": {"targets": {"go": ["a", "b"]}}},
        "bad_value",
        r"Targets of 'go' must be numbers, got \['a', 'b'\]",
    ),
    ("set_targets", {"robot": "x", "targets": {}}, "unknown_articulation", "robot must be"),
)


@pytest.mark.parametrize(("op", "fields", "code", "message"), WRONG)
def test_wrong_requests_are_one_sentence(server, lab, op, fields, code, message):
    """Send what is wrong: one error with its code, and the world is as it was."""
    client = connect(server)
    before = lab.snapshot
    error = error_of(client, op, **fields)
    assert error.code == code
    assert message.replace("\\", "") in str(error), str(error)
    assert not str(error).endswith("?.")
    assert np.array_equal(lab.snapshot.block, before.block)
    assert server.errors[code] == 1


def test_other_codes(server, lab, clock):
    """Provoke the errors that need more than one request."""
    client = connect(server)
    client.ask("recording_start")
    assert error_of(client, "recording_start").code == "recording_already_active"
    client.ask("recording_stop")
    client.session_id = "0"
    assert error_of(client, "step").code == "session_expired"
    server.attach(None)
    connected = connect(server)
    assert error_of(connected, "step").code == "no_active_manager"
    server.attach(lab)
    server.closing = True
    assert error_of(connected, "step").code == "shutting_down"
    server.closing = False
    lab.modes.set("puppet")
    short = {"mode": "puppet", "qpos": [1.0], "qvel": [1.0]}
    assert error_of(connected, "step", **short).code == "dim_mismatch"
    assert error_of(connected, "step", mode="puppet").code == "missing_field"
    lab.modes.set("direct")
    lab.loop.mode_locked = True
    assert error_of(connected, "set_mode", mode="live").code == "mode_locked_by_server"
    lab.stop()
    assert error_of(connected, "set_paused", paused=True).code == "not_ready"


def test_steps_that_take_too_long(lab, monkeypatch):
    """Hold the world: a step ends with an error after its time, and the server goes on."""
    monkeypatch.setattr("manyworlds.lab.loop.physics_loop._COMMAND_S", 0.2)
    client = connect(Dispatcher(lab))
    held, free = threading.Event(), threading.Event()

    def hold() -> None:
        with lab.lock():
            held.set()
            free.wait(PATIENCE_S)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(PATIENCE_S)
    error = error_of(client, "step")
    free.set()
    thread.join()
    assert error.code == "step_timeout"
    client.ask("set_paused", paused=False)


@pytest.mark.parametrize(
    "request_",
    [
        b"",
        b"{",
        b"{]",
        b"\xc1",
        b"[1]",
        b'{"op": NaN}',
        b'{"op": "\\ud800"}',
        b'{"op": "step", "\\udfff": 1}',
        b'{"op": 1' + b"0" * 30 + b"}",
        b"\x81\x01\x02",
        b"\x93\x01\x02\x03",
        b"\xc7\x01\x05a",
        b"\xdf\xff\xff\xff\xff",
        b'{"op":"step","a":' + b"[" * 100_000,
        b'{"op":"step","a":' + b"[" * 40 + b"]" * 40 + b"}",
        b'{"content__b64__": "?"}',
        msgpack.packb({"op": "step", "a": [0] * 300_000}),
        msgpack.packb({"op": "step", "a": msgpack.ExtType(5, b"x")}),
    ],
)
def test_what_cannot_be_read(server, request_):
    """Send bytes that are no request: they are refused in one sentence, and counted."""
    reply = msgpack.unpackb(server.handle(request_, "a"))
    assert reply["op"] == "error" and reply["code"] in ("bad_request", "missing_op")
    assert "\n" not in reply["message"] and len(reply["message"]) < 300
    assert server.errors["bad_request"] == 1


def test_limits(lab, clock):
    """Set low limits: long messages and too many requests are refused, then it goes on."""
    limits = Limits(max_bytes=1000, max_rate=10.0)
    server = Dispatcher(lab, LabServerCfg(limits=limits), clock)
    client = connect(server)
    assert error_of(client, "step", padding="x" * 2000).code == "bad_request"
    for _ in range(8):
        client.ask("heartbeat")
    assert error_of(client, "heartbeat").code == "rate_limited"
    clock.now += 1.0
    client.ask("heartbeat")


def test_many_sessions_make_room(lab, clock):
    """Say hello from more clients than fit: the driver stays, the quietest observer goes."""
    server = Dispatcher(lab, LabServerCfg(limits=Limits(max_sessions=3)), clock)
    clients = []
    for i in range(5):
        clock.now += 0.1
        clients.append(connect(server, i))
    assert len(server.sessions) == 3 and clients[0].ask("step")
    assert error_of(clients[1], "heartbeat").code == "session_expired"
    clients[4].ask("heartbeat")


def test_one_drives_and_others_observe(server):
    """Say hello twice, as old clients do: the second may read, its writes are refused."""
    first, second = connect(server, "a"), connect(server, "b")
    assert first.world["driver"] and not second.world["driver"]
    first.ask("step")
    second.ask("read_status")
    second.ask("get_contacts")
    second.ask("call_verb", verb="read_status")
    for op in ("step", "reset"):
        error = error_of(second, op)
        assert error.code == "session_expired" and "observes" in str(error)
    assert error_of(second, "call_verb", verb="reset").code == "session_expired"
    assert second.ask("take_driver")["previous"].startswith("client")
    second.ask("step")
    assert error_of(first, "step").code == "session_expired"
    assert any("took over" in event["text"] for event in first.ask("network_status")["events"])
    second.ask("release_driver")
    first.ask("step")  # nobody drove


def test_takeover_by_the_newest(lab, clock):
    """Start with `takeover`: each new client drives, the one before observes."""
    server = Dispatcher(lab, LabServerCfg(takeover=True), clock)
    first, second = connect(server, "a"), connect(server, "b")
    second.ask("step")
    assert error_of(first, "step").code == "session_expired"
    assert not connect(server, "c", role="observer").world["driver"]
    second.ask("step")


def test_roles(server):
    """Ask for a role: an observer does not drive even if nobody does, a takeover does at once."""
    watcher = connect(server, "a", role="observer")
    assert not watcher.world["driver"] and server.sessions.driver is None
    driver = connect(server, "b", client="arm script")
    taker = connect(server, "c", role="takeover")
    assert driver.world["driver"] and taker.world["driver"]
    assert "arm script" in next(iter(server.sessions.events))


def test_a_second_greeting_on_one_connection(server):
    """Say hello again on a connection: the new session drives, the old one ended."""
    client = connect(server)
    old = client.session_id
    client.hello()
    client.ask("step")
    client.session_id = old
    assert error_of(client, "step").code == "session_expired"


def test_heartbeats(server, lab, clock):
    """Stop the heartbeats of a driver: after 2 s it is gone, and the mode is as before."""
    client = connect(server, "a", heartbeats=True)
    old = connect(server, "b")
    client.ask("set_mode", mode="live")
    client.ask("step", per_articulation={"go": {"ctrl": [1.0, 1.0]}})
    for _ in range(10):
        clock.now += 1.9
        client.ask("heartbeat")
        server.tick()
    server.disconnected("a")  # a lost socket is no lost client
    assert server.sessions.driver is not None
    clock.now += 2.1
    server.tick()
    assert server.sessions.driver is None and len(server.sessions) == 1
    assert lab.loop.mode == "direct"  # as it was before the client
    assert lab["go"].command.targets.tolist() == [1.0, 1.0]
    assert error_of(client, "heartbeat").code == "session_expired"
    clock.now += 1000.0
    server.tick()
    old.ask("set_paused", paused=False)


@pytest.mark.parametrize(("on_loss", "targets"), [("hold", [1.0, 2.0]), ("zero", [0.0, 0.0])])
def test_a_lost_driver_leaves_the_world_in_order(lab, on_loss, targets):
    """Cut the connection of an old client: targets as configured, mode live, others may drive."""
    server = Dispatcher(lab, LabServerCfg(on_loss=on_loss))
    lab.modes.set("live")
    client, watcher = connect(server, "a"), connect(server, "b")
    client.ask("set_mode", mode="puppet")
    client.ask("set_mode", mode="direct")
    client.ask("step", per_articulation={"go": {"ctrl": [1.0, 2.0]}})
    lab["go2"].take("panel")
    lab["go2"].write("panel", {"hip": 3.0})
    server.disconnected("a")
    assert lab.modes.mode == "live" and lab["go"].command.targets.tolist() == targets
    assert lab["go2"].command.targets.tolist() == [3.0, 0.0]
    watcher.ask("set_paused", paused=True)


def test_unexpected_errors_are_told_and_logged(server, monkeypatch, caplog):
    """Let an operation fail by a defect: the client gets an error, the log the traceback."""
    client = connect(server)

    def fail(*_, **__):
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(plugin_of(server), "refresh", fail)
    error = error_of_raw(client, "step")
    assert error.code == "internal_error" and "ZeroDivisionError: oh" in str(error)
    assert "Traceback" in caplog.text


def error_of_raw(client, op) -> ReplyError:
    """Return the error frame of a request."""
    with pytest.raises(ReplyError) as caught:
        client.ask(op)
    return caught.value


def test_names_that_clients_cannot_tell_apart():
    """Serve `go` and `go_2`: greetings say what to rename."""
    world = two_robots()
    world.robots = {"go": "go/", "go_2": "go2/"}
    with LiveLab(world, LabCfg(mode="direct")) as lab:
        client = Client(lambda request: Dispatcher(lab).handle(request, "a"))
        error = error_of(client, "hello")
        assert error.code == "not_ready" and "rename one of them" in str(error)


def test_each_verb_is_an_operation():
    """Compare the registries: every verb can be requested, and reads are marked as such."""
    assert set(VERBS) - LOCAL <= set(OPERATIONS)
    here = {"run_policy", "add_mesh_prop_from_file", "add_item_file", "open_scene", "save_scene"}
    assert here == LOCAL and not LOCAL & set(OPERATIONS)
    assert not EDITOR & set(OPERATIONS)
    for name in set(VERBS) - LOCAL:
        assert OPERATIONS[name].writes is not VERBS[name].reads, name


def test_reads_change_nothing(lab):
    """Call the verbs that observers may call: the world is as it was."""
    lab.call("capture_state", label="a")
    fields = {
        "list_keyframes": {"robot": "go"},
        "export_state": {"label": "a"},
        "pick_body": {"origin": [0, 0, 9], "direction": [0, 0, -1]},
    }
    before = lab.snapshot
    others = {"describe_world", "export_model", "get_contacts", "list_states", "read_status"}
    for name in {*fields, *others}:
        assert VERBS[name].reads
        lab.call(name, **fields.get(name, {}))
    assert np.array_equal(lab.snapshot.block, before.block) and lab.snapshot.step == before.step


def test_the_catalogue_says_who_may_call():
    """Read the registry: texts are sentences, fields have a meaning, all is plain data."""
    for operation in OPERATIONS.values():
        assert operation.text.endswith("."), operation.name
        assert json.dumps(operation.describe())
        for field in operation.fields.values():
            assert field.text, (operation.name, field)


def test_replies_have_the_fields_that_are_declared(server):
    """Compare replies with the catalogue, for operations that need nothing."""
    client = connect(server)
    for name in ("step", "reset", "forward", "network_status", "meta", "list_keyframes"):
        reply = client.ask(name)
        assert set(reply) == {"op", *OPERATIONS[name].reply}, name


def test_addresses_of_other_machines_are_refused():
    """Configure an address that others could reach: the reason is one sentence."""
    for host in ("0.0.0.0", "192.168.1.2", "example.org", "::"):
        with pytest.raises(ValueError, match="no passwords"):
            LabServerCfg(host=host)
    with pytest.raises(ValueError, match="must be another one"):
        LabServerCfg(step_port=5555)
    assert LabServerCfg(host="localhost", state_port=0, info_port=0)


def test_each_request_is_logged_and_counted(server, caplog):
    """Request twice, once wrongly: the log has the times, the counters have both."""
    client = connect(server)
    with caplog.at_level("DEBUG", logger="manyworlds.lab.server.dispatcher"):
        client.ask("forward")
        error_of(client, "set_paused")
    assert re.search(r"forward: \d+\.\d\d ms", caplog.text)
    assert re.search(r"set_paused: \d+\.\d\d ms missing_field", caplog.text)
    counters = client.ask("network_status")["counters"]
    assert counters["ops"]["forward"] == 1 and counters["errors"] == {"missing_field": 1}


@pytest.mark.parametrize("level", ["minimal", "standard", "full"])
def test_steps_ask_the_lab_for_nothing_else(lab, monkeypatch, level):
    """Step at each level: the only verb that the lab carries out is the step."""
    verbs, call = [], lab.call
    monkeypatch.setattr(lab, "call", lambda verb, **f: verbs.append(verb) or call(verb, **f))
    clock = iter(range(1000))
    server = Dispatcher(lab, clock=lambda: float(next(clock)))
    key = _ask(server, op="hello", observations=level)["session_id"]
    _ask(server, op="set_mode", mode="direct", session_id=key)
    verbs.clear()
    for _ in range(3):
        assert _ask(server, op="step", session_id=key)["op"] == "step_ok"
    assert verbs == ["step"] * 3
    server.close()


def _ask(server: Dispatcher, **fields) -> dict:
    return msgpack.unpackb(server.handle(msgpack.packb(fields), "a"))
