"""Fast path: a publisher of a world, and programs that draw it."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from pathlib import Path

import gymnasium
import msgpack
import mujoco
import numpy as np
import pytest
import zmq

from manyworlds.lab import LabCfg, LiveLab, World, world_from_file, world_from_spec
from manyworlds.plugins.urlab.fast_path import FastPathReader, PublisherError, find_publishers
from manyworlds.plugins.urlab.fast_path.reader import Newest, find_publisher, pose_bodies
from manyworlds.plugins.urlab.fast_path.registry import STALE_S, Publisher, RegistryFile
from tests.lab.server.hostile import send_pushes
from tests.lab.server.waiting import WAIT_S, until
from tests.plugins.urlab.publishers import fast_path_of, hub, lab, reader, registry, shared

__all__ = ["hub", "lab", "reader", "registry", "shared"]
ROBOTS = ["ant.xml", "humanoid.xml", "half_cheetah.xml"]
ASSETS = Path(gymnasium.__file__).parent / "envs/mujoco/assets"
MODELS = {
    "ball": """<mujoco model="ball"><worldbody><geom type="plane" size="1 1 1"/>
        <body name="ball" pos="0 0 1"><freejoint/><geom size=".1"/></body>
        <body name="target" mocap="true" pos="1 0 1"><geom size=".05" contype="0"/></body>
        </worldbody></mujoco>""",
}


def ask_raw(hub, *frames: bytes) -> dict:
    """Send any frames by a REQ socket, and return the answer."""
    with zmq.Context() as context, context.socket(zmq.REQ) as peer:
        peer.setsockopt(zmq.LINGER, 0)
        peer.connect(f"tcp://127.0.0.1:{hub.ports['fast_path']}")
        peer.send_multipart(frames)
        assert peer.poll(int(1e3 * WAIT_S)), "a request was not answered"
        return msgpack.unpackb(peer.recv())


def newest_of(reader, accept=lambda newest: True) -> Newest:
    """Wait for poses that are accepted."""
    newest = Newest()

    def come():
        reader.read(newest)
        return newest.geoms and newest.viewer and accept(newest)

    until(come, "no poses came")
    return newest


def model_of(name: str) -> World:
    """Build a world of a model of these tests, or of a robot that others made."""
    if name in MODELS:
        return world_from_spec(mujoco.MjSpec.from_string(MODELS[name]))
    return world_from_file(ASSETS / name)


def test_the_greeting_has_the_compiled_model(lab, hub, reader):
    """Say hello as an old reader does: the model is the lab's, and further fields say more."""
    reply = reader.request("fastpath_hello")
    assert reply["ok"] is True and reply["scene"] == "go, go2, box"
    assert reply["ngeom"] == lab.model.ngeom
    assert reply["bus"] == f"tcp://127.0.0.1:{hub.ports['fast_path_bus']}"
    model = mujoco.MjModel.from_binary_path("m.mjb", {"m.mjb": reply["mjb"]})
    for name in ("body_mass", "geom_size", "jnt_range", "actuator_gainprm"):
        assert np.array_equal(getattr(model, name), getattr(lab.model, name))
    assert (reply["format"], reply["capabilities"]) == (
        "mjb",
        {"accept_input": True, "state": True},
    )
    assert reply["robots"] == ["go", "go2", "box"]
    assert reply["requests"] == f"tcp://127.0.0.1:{hub.ports['step']}"
    assert reply["mujoco_version"] == mujoco.__version__


def test_poses_are_those_of_the_snapshots(lab, reader):
    """Listen while the world steps: each message is one snapshot, bit for bit."""
    reader.hello()
    first = newest_of(reader)  # a reader that comes later sees the world at once
    assert first.geoms["f"] <= lab.snapshot.frame_id
    for steps in (1, 5):
        snapshot = lab.step(steps)
        newest = newest_of(reader, lambda n, f=snapshot.frame_id: n.geoms["f"] >= f)
        assert newest.geoms["bxpos"] == snapshot.xpos.ravel().tolist()
        assert newest.geoms["bxquat"] == snapshot.xquat.ravel().tolist()
        until(
            lambda n=newest, t=snapshot.time: reader.read(n) or n.viewer["t"] == t,
            "no positions came",
        )
        assert newest.viewer["qpos"] == snapshot.qpos.tolist()
        assert newest.viewer["qvel"] == snapshot.qvel.tolist()


@pytest.mark.parametrize("name", ROBOTS)
def test_robots(hub, reader, name):
    """Read third-party robots: local kinematics at the positions give the published bodies."""
    with LiveLab(model_of(name), LabCfg(mode="direct")) as lab:
        hub.attach(lab)
        model = reader.hello().model
        snapshot = lab.step(3)
        newest = newest_of(reader, lambda n: n.geoms["f"] >= snapshot.frame_id)
        data = mujoco.MjData(model)
        data.qpos[:] = snapshot.qpos
        mujoco.mj_kinematics(model, data)
        bodies = np.reshape(newest.geoms["bxpos"], (-1, 3))
        # Positions of the bodies lag the state by no more than one step of `mj_step`.
        assert bodies == pytest.approx(data.xpos, abs=0.02)
        body, before = model.nbody - 1, lab.snapshot.qvel.copy()
        assert reader.request("fastpath_perturb", body=body, force=[0, 0, 50.0]) == {"ok": True}
        lab.step()
        assert np.abs(lab.snapshot.qvel - before).max() > 1e-3
        hub.attach(None)


def test_pushes_add_up_for_one_step(lab, reader):
    """Push a body twice and another one once: the next step feels the sums, as in MuJoCo."""
    body, other = lab.model.body("box/box").id, lab.model.body("go/base").id
    twin = mujoco.MjData(lab.model)
    lab.world.reset(lab.model, twin)
    mujoco.mj_forward(lab.model, twin)
    for fields in (
        {"body": body, "force": [1.0, 0.0, 2.0], "torque": [0.0, 0.1, 0.0]},
        {"body": body, "force": [2.0]},  # filled with zeros
        {"body": float(other), "force": [0.0, 3.0, 0.0, 99.0], "torque": []},  # cut
        {"body": -1, "force": [9.0, 9.0, 9.0]},
        {"body": 0, "force": [9.0, 9.0, 9.0]},
    ):
        assert reader.request("fastpath_perturb", **fields) == {"ok": True}
    twin.xfrc_applied[body] = [3.0, 0.0, 2.0, 0.0, 0.1, 0.0]
    twin.xfrc_applied[other] = [0.0, 3.0, 0.0, 0.0, 0.0, 0.0]
    for _ in range(2):
        twin.ctrl[:] = lab.loop.data.ctrl
        lab.step()
        mujoco.mj_step(lab.model, twin)
        twin.xfrc_applied[:] = 0.0
        assert np.array_equal(lab.snapshot.qvel, twin.qvel)


def test_the_port_of_other_requests_leads_to_the_fast_path(lab, hub):
    """Give the port that `connect` takes: the reader finds the model and the poses."""
    reader = FastPathReader(f"tcp://127.0.0.1:{hub.ports['step']}")
    scene = reader.hello()
    assert scene.model.nq == lab.model.nq and scene.has_state
    assert reader.address == f"tcp://127.0.0.1:{hub.ports['fast_path']}"
    newest_of(reader)
    until(lambda: not list(hub.dispatcher.sessions), "the session of the question stays")
    reader.close()


@pytest.mark.parametrize("nested", [False, True])
def test_drags_are_mujocos_spring(lab, reader, nested):
    """Drag a body as a later reader does: the force is that of the page's pull."""
    body = lab.model.body("box/box").id
    local, goal = [0.05, 0.0, 0.1], [1.3, 0.2, 0.6]
    fields = {"select": body, "active": 1, "localpos": local, "refselpos": goal}
    lab.call("drag_body", body=body, localpos=local, target=goal)
    expected = lab.step().xfrc_applied[body]
    lab.call("release_body")
    lab.reset()
    for _ in range(2):
        sent = {"drag": fields} if nested else fields
        assert reader.request("fastpath_perturb", **sent) == {"ok": True}
    assert np.array_equal(lab.step().xfrc_applied[body], expected) and expected.any()
    turn = {**fields, "active": 2}
    assert "needs refquat" in reader.request("fastpath_perturb", **turn)["error"]
    reader.request("fastpath_perturb", **turn, refquat=[0.0, 1.0, 0.0, 0.0])
    assert np.abs(lab.step().xfrc_applied[body, 3:]).max() > 0.0
    reader.request("fastpath_perturb", **{**fields, "active": False})
    assert not lab.step().xfrc_applied.any() and lab.perturbation.body == 0


def test_the_end_of_one_drag_is_not_that_of_another(lab, hub, reader):
    """Let go of nothing while the page pulls: the page's pull goes on."""
    point = lab.snapshot.xpos[1]
    lab.call("grab_body", body=1, point=point)
    lab.call("pull_body", target=point + np.array([0.0, 0.0, 0.5]))
    other = FastPathReader(reader.address)
    assert other.request("fastpath_perturb", select=0, active=0) == {"ok": True}
    other.close()
    assert lab.step().xfrc_applied[1].any()


BAD = [
    (b"", "neither JSON nor msgpack"),
    (b"\xc1", "neither JSON nor msgpack"),
    (b"{", "it is no JSON"),
    (msgpack.packb([1, 2]), "no map"),
    (msgpack.packb({}), "no operation None"),
    (msgpack.packb({"op": "hello"}), "use fastpath_hello or fastpath_perturb"),
    (msgpack.packb({"op": ["fastpath_hello"]}), "no operation"),
    (b"\x81" * 40, "neither JSON nor msgpack"),
    (msgpack.packb({"op": "fastpath_hello", "x": "y" * 100_000}), "more than 65536"),
    (msgpack.packb({"op": "fastpath_perturb", "body": 999}), "999"),
    *(
        (msgpack.packb({"op": "fastpath_perturb", **fields}), "^bad perturb$")
        for fields in (
            {},
            {"body": "box"},
            {"body": True},
            {"body": 1.5},
            {"body": float("nan")},
            {"body": 1, "force": "up"},
            {"body": 1, "force": [1, "x"]},
            {"body": 1, "force": [1, float("nan"), 0]},
            {"body": 1, "torque": [float("inf")]},
            {"body": 1, "force": {"x": 1}},
            {"select": 1, "active": "yes"},
            {"select": None, "active": 1},
            {"select": 1, "active": 1, "refselpos": [None]},
            {"select": 1, "active": 2, "refquat": [0, 0, 0, 0]},
            {"drag": 3},
        )
    ),
]


@pytest.mark.parametrize(("request_bytes", "answer"), BAD, ids=range(len(BAD)))
def test_every_request_is_answered(lab, hub, request_bytes, answer):
    """Send anything: the answer is a map with one sentence, and nothing moves."""
    before = lab.snapshot.qpos.copy()
    reply = ask_raw(hub, request_bytes)
    assert set(reply) == {"error"} and re.search(answer, reply["error"])
    assert np.array_equal(lab.snapshot.qpos, before) and not lab.loop.data.xfrc_applied.any()
    assert not lab.perturbation._forces._waiting  # no force waits for the next step


def test_hostile_requests(lab, hub):
    """Send 10 000 wild, mutated and random requests: each has a reply, and the lab goes on."""
    server = fast_path_of(hub)
    until(lambda: server._world is not None, "no world is served")
    counts = send_pushes(server.answer, 10_000, seed=0)
    assert counts["ok"] > 50 and counts["error"] > 5000
    assert server.counts["errors"] >= counts["error"]
    lab.call("release_body")
    lab.loop.do(lambda model, data: lab.perturbation._forces.close())
    lab.reset()
    assert np.isfinite(lab.step(2).qpos).all() and not lab.snapshot.fault


def test_odd_frames_and_no_world(hub):
    """Send several frames, and greet a publisher without a world."""
    hello = msgpack.packb({"op": "fastpath_hello"})
    assert "one frame, not 2" in ask_raw(hub, hello, b"more")["error"]
    assert "no world at present" in ask_raw(hub, hello)["error"]
    assert find_publishers() == []


def test_readers_that_do_not_read_delay_nobody(lab, hub, reader):
    """Leave poses unread: the publisher answers, and the next reader sees the newest ones."""
    scene = reader.hello()
    assert scene.model_id
    with zmq.Context() as context, context.socket(zmq.SUB) as stuck:
        stuck.setsockopt(zmq.RCVHWM, 1)
        stuck.setsockopt(zmq.SUBSCRIBE, b"")
        stuck.connect(f"tcp://127.0.0.1:{hub.ports['fast_path_bus']}")
        for _ in range(300):
            lab.step()
        snapshot = lab.snapshot
        newest_of(reader, lambda n: n.geoms["f"] >= snapshot.frame_id)
        assert reader.is_there()


def test_the_next_hello_has_the_changed_model(hub, reader):
    """Change a size, then rebuild with another body: poses tell it, and the next hello has it."""
    with LiveLab(model_of("ball"), LabCfg(mode="direct")) as lab:
        hub.attach(lab)
        first = reader.hello()
        newest = newest_of(reader)
        assert newest.geoms["model_id"] == first.model_id
        lab.post(lambda model, data: model.geom_size.__setitem__((1, 0), 0.2)).result(WAIT_S)
        newest_of(reader, lambda n: n.geoms["model_id"] != first.model_id)
        second = reader.hello()
        assert second.model.geom_size[1, 0] == 0.2 and first.model.geom_size[1, 0] == 0.1
        spec = mujoco.MjSpec.from_string(MODELS["ball"])
        spec.worldbody.add_body(name="new").add_geom(size=[0.1, 0.0, 0.0])
        assert lab.rebuild(world_from_spec(spec))
        newest = newest_of(reader, lambda n: len(n.geoms["bxpos"]) == 3 * lab.model.nbody)
        assert reader.hello().model.nbody == lab.model.nbody == 4
        hub.attach(None)


def test_the_registry(lab, hub, registry, monkeypatch):
    """Read the file of a publisher: its fields, its refreshing, and its end."""
    path = until(lambda: next(registry.glob("fastpath_*.json"), None), "there is no file")
    assert path.name == f"fastpath_{fast_path_of(hub).instance}_{os.getpid()}.json"
    fields = json.loads(path.read_text())
    ports = hub.ports
    assert fields["role"] == "fastpath_owner" and fields["capabilities"] == ["fastpath_owner"]
    assert fields["control"] == f"tcp://127.0.0.1:{ports['fast_path']}"
    assert fields["bus"] == f"tcp://127.0.0.1:{ports['fast_path_bus']}"
    assert (fields["control_port"], fields["bus_port"]) == (
        ports["fast_path"],
        ports["fast_path_bus"],
    )
    assert (fields["host"], fields["pid"]) == ("127.0.0.1", os.getpid())
    assert (fields["scene"], fields["ngeom"]) == ("go, go2, box", lab.model.ngeom)
    assert abs(fields["registry_written_at"] - time.time()) < 12.0
    assert find_publisher() == fields["control"]
    hub.attach(None)
    until(lambda: not path.exists(), "the file stays")


def test_registry_files_of_others(tmp_path, monkeypatch):
    """Find the newest publisher; leave out files that are old, damaged, or of killed processes."""
    now = time.time()
    rest = {"host": "127.0.0.1", "scene": "s", "ngeom": 1, "bus_port": 2}
    mine = RegistryFile("a", tmp_path)
    publisher = Publisher(instance_id="a", pid=os.getpid(), control_port=1, started_at=5, **rest)
    mine.write(publisher)
    (found,) = find_publishers(tmp_path)
    assert found.control == "tcp://127.0.0.1:1" and abs(found.registry_written_at - now) < 5
    written = mine.path.stat().st_mtime_ns
    mine.write(publisher)
    assert mine.path.stat().st_mtime_ns == written  # not due yet
    monkeypatch.setattr(time, "time", lambda: now + 6.0)
    mine.write(publisher)
    assert mine.path.stat().st_mtime_ns != written
    RegistryFile("b", tmp_path).write(
        Publisher(instance_id="b", pid=os.getpid(), control_port=3, started_at=9, **rest)
    )
    for name, text in (
        (
            "killed",
            json.dumps({**vars(publisher), "pid": 2**22 + 1, "registry_written_at": int(now)}),
        ),
        ("damaged", '{"pid": '),
        ("other", '{"role": "x"}'),
        ("list", "[]"),
    ):
        (tmp_path / f"fastpath_{name}_1.json").write_text(text)
    assert [o.instance_id for o in find_publishers(tmp_path)] == ["b", "a"]
    monkeypatch.setattr(time, "time", lambda: now + STALE_S + 10.0)
    assert find_publishers(tmp_path) == []
    mine.remove()
    mine.remove()
    assert not mine.path.exists()


def test_where_an_owner_is(registry):
    """Name a publisher in all ways, wrongly, and not at all where there is none."""
    for given, found in (
        ("localhost", "tcp://127.0.0.1:5571"),
        ("10.0.0.7", "tcp://10.0.0.7:5571"),
        ("box:99", "tcp://box:99"),
        ("5600", "tcp://127.0.0.1:5600"),
        ("tcp://127.0.0.1:5572", "tcp://127.0.0.1:5572"),
    ):
        assert find_publisher(given) == found
    for wrong in ("box:", "box:x", "box:99999"):
        with pytest.raises(ValueError, match="HOST:PORT"):
            find_publisher(wrong)
    with pytest.raises(PublisherError, match="No world is served on this machine"):
        find_publisher()


def test_readers_of_nothing(hub):
    """Read a silent port, a publisher of another MuJoCo, and none of this protocol."""
    with zmq.Context() as context, context.socket(zmq.REP) as other:
        port = other.bind_to_random_port("tcp://127.0.0.1")
        reader = FastPathReader(f"tcp://127.0.0.1:{port}", timeout=0.2)
        with pytest.raises(PublisherError, match="No publisher answers"):
            reader.hello()
        other.recv()
        other.send(b"")  # to the socket that was thrown away
        for reply, times, text in (
            (msgpack.packb("hi"), 1, "is no publisher"),
            (b"\xc1", 1, "is no publisher"),
            # The quick question, and the greeting.
            (msgpack.packb({"error": "no"}), 2, "nothing to show: no"),
            (msgpack.packb({"mujoco_version": "3.1.0"}), 2, "has MuJoCo 3.1.0 and this program"),
            (msgpack.packb({"mjb": b"MJB"}), 2, "cannot read the model"),
            (msgpack.packb({"format": "xml"}), 2, "sends no compiled model, but 'xml'"),
        ):

            def serve(reply=reply, times=times):
                for _ in range(times):
                    other.recv()
                    other.send(reply)

            thread = threading.Thread(target=serve)
            thread.start()
            reader._timeout = WAIT_S
            with pytest.raises(PublisherError, match=text):
                reader.hello()
            thread.join()
        reader.close()


def test_poses_of_bodies_alone():
    """Put bodies of a third-party robot: geoms and sites are where MuJoCo has them."""
    for name in ROBOTS:
        model = mujoco.MjModel.from_xml_path(str(ASSETS / name))
        data, mine = mujoco.MjData(model), mujoco.MjData(model)
        data.qpos[:] = model.qpos0 + np.linspace(0.0, 0.5, model.nq)
        mujoco.mj_forward(model, data)
        pose_bodies(model, mine, data.xpos, data.xquat)
        for field in ("xmat", "xipos", "geom_xpos", "geom_xmat", "site_xpos"):
            np.testing.assert_allclose(getattr(mine, field), getattr(data, field), atol=1e-9)
