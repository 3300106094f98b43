import logging
import os
import signal
import subprocess
import sys
import threading

import mujoco
import numpy as np
import pytest

from manyworlds.lab import LabCfg, LiveLab, world_from_file, world_from_spec
from manyworlds.lab.verbs import VerbError
from tests.robots import robot_file
from tests.waiting import PATIENCE_S

trimesh = pytest.importorskip("trimesh", reason="needs the extra 'meshes'")
pytest.importorskip("coacd", reason="needs the extra 'meshes'")

FLOOR = "<mujoco><worldbody><geom name='floor' type='plane' size='5 5 .1'/></worldbody></mujoco>"
TORUS = trimesh.creation.torus(0.2, 0.05, major_sections=100, minor_sections=60)


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A lab of a floor, whose cache of pieces is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    world = world_from_spec(mujoco.MjSpec.from_string(FLOOR))
    with LiveLab(world, LabCfg(mode="direct")) as lab:
        yield lab


def test_a_box_mesh_falls_and_rests(lab, tmp_path):
    """Add a box from a file: it falls onto the floor, and lies there on its lower face."""
    box = trimesh.creation.box((0.2, 0.3, 0.1))
    box.apply_translation((0.0, 0.0, 0.3))
    box.export(tmp_path / "box.obj")
    reply = lab.call("add_mesh_prop_from_file", path=tmp_path / "box.obj", pos=[0, 0, 0.5])
    assert (reply["name"], reply["state"], reply["pieces"]) == ("box", "done", 1)
    assert lab.call("add_mesh_prop_from_file", path=tmp_path / "box.obj", pos=[2, 0, 0])["name"]
    assert {"box", "box_1"} <= lab.scene.items.keys() and lab.model.nq == 14
    lab.step(1000)
    assert lab.snapshot.qpos[2] == pytest.approx(-0.25, abs=2e-3)
    assert np.abs(lab.snapshot.qvel[:6]).max() < 1e-2


def test_a_conversion_does_not_delay_physics_and_can_be_cancelled(lab):
    """Step the world while a mesh is decomposed, cancel that, and close a lab during another."""
    content = TORUS.export(file_type="stl")
    fields = {"content": content, "file_name": "torus.stl", "wait": False}
    number = lab.call("add_mesh_prop", **fields)["conversion"]
    begin = lab.snapshot.step
    lab.step(50)
    reply = lab.call("read_conversion", conversion=number)
    assert reply["state"] == "running" and lab.snapshot.step == begin + 50
    reply = lab.call("cancel_conversion", conversion=number)
    assert reply["state"] == "cancelled" and "was cancelled" in reply["text"]
    other = lab.call("add_mesh_prop", **fields)["conversion"]
    lab.stop()
    assert lab.conversions[other].state == "cancelled"
    assert not [t for t in threading.enumerate() if t.name == "manyworlds-convert"]


def test_two_props_at_once_are_both_added(lab):
    """Add shapes from several threads: none is lost, and all have names of their own."""
    threads = [
        threading.Thread(
            target=lambda i=i: lab.call("add_prop", shape="sphere", size=[0.1], pos=[i, 0, 1])
        )
        for i in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([name for name in lab.scene.items if name.startswith("prop")]) == 4
    assert lab.model.nq == 28


def test_props_without_a_name_get_one(lab, tmp_path):
    """Add a shape without a name, and meshes whose files have names that items may not have."""
    shape = lab.call("add_prop", shape="box", size=[0.1] * 3, pos=[0, 0, 1], name="")
    content = trimesh.creation.box((0.1, 0.1, 0.1)).export(file_type="stl")
    (tmp_path / "my part (2).stl").write_bytes(content)
    fields = {"threshold": 0.0, "pos": [1, 0, 1]}
    mesh = lab.call("add_mesh_prop_from_file", path=tmp_path / "my part (2).stl", **fields)
    again = lab.call("add_mesh_prop", content=content, file_name="../my part (2).stl", **fields)
    assert [shape["name"], mesh["name"], again["name"]] == ["box", "my_part__2", "my_part__2_1"]
    assert {"box", "my_part__2", "my_part__2_1"} <= lab.scene.items.keys()


def test_positions_have_mujocos_limit(lab):
    """Refuse positions from which MuJoCo would reset the world; the world goes on."""
    for pos in ([1e300, 0, 0], [0, 2e10, 0]):
        with pytest.raises(VerbError, match=r"up to MuJoCo's limit of 1e\+10"):
            lab.call("add_prop", shape="box", size=[0.1] * 3, pos=pos)
    assert lab.step(2).time > 0.0


def test_errors_are_one_sentence(lab):
    """Refuse bad meshes and settings; the world stays as it is."""
    model = lab.model
    for fields, message in (
        ({"content": b"", "file_name": "a.obj"}, "has no triangles"),
        ({"content": b"", "file_name": "../a.zip"}, "must end with .stl, .obj"),
        ({"content": b"x", "file_name": "a.obj", "mode": "flying"}, "mode must be one of"),
        ({"content": b"x", "file_name": "a.obj", "threshold": 0.001}, "threshold must be in"),
        ({"content": b"x", "file_name": "a.obj", "scale": [0]}, "other than zero"),
        ({"content": b"x", "file_name": "a.obj", "name": "a/b"}, "no valid name"),
    ):
        with pytest.raises(VerbError, match=message) as error:
            lab.call("add_mesh_prop", **fields)
        assert "\n" not in str(error.value)
    with pytest.raises(VerbError, match="There is no conversion 99"):
        lab.call("read_conversion", conversion=99)
    assert lab.model is model


def test_a_defect_does_not_look_like_an_error_of_the_user(lab, monkeypatch, caplog):
    """Let the addition fail inside: the log has the traceback; a bad mesh leaves it empty."""
    fields = {"content": b"", "file_name": "a.obj", "wait": False}
    with caplog.at_level(logging.ERROR):
        number = lab.call("add_mesh_prop", **fields)["conversion"]
        lab.conversions[number].wait()
        reply = lab.call("read_conversion", conversion=number)
        assert reply["state"] == "failed" and "has no triangles" in reply["text"]
        assert not caplog.records
        monkeypatch.setattr(lab.scene, "add", lambda *args, **more: {}["no such key"])
        content = trimesh.creation.box((0.1, 0.1, 0.1)).export(file_type="stl")
        fields = {"content": content, "file_name": "box.stl", "wait": False}
        number = lab.call("add_mesh_prop", **fields)["conversion"]
        lab.conversions[number].wait()
    reply = lab.call("read_conversion", conversion=number)
    assert reply["state"] == "failed" and reply["text"] == "KeyError: 'no such key'"
    (record,) = caplog.records
    assert "'box'" in record.getMessage() and record.exc_info is not None


@pytest.mark.parametrize("name", ["unitree_go1/go1.xml", "i2rt_yam/yam.xml"])
def test_props_join_third_party_robots(name):
    """Add a crate to a world of a third-party robot, which keeps its state and its name."""
    lab = LiveLab(world_from_file(robot_file(name), plane=True), LabCfg(mode="direct"))
    robots, before = dict(lab.robots), lab.step(20)
    reply = lab.call("add_prop", shape="box", size=[0.1] * 3, pos=[1, 0, 1], name="crate")
    assert reply["state"] == "done" and lab.robots == robots and "crate" in lab.scene.items
    assert lab.snapshot.time == before.time
    np.testing.assert_array_equal(lab.snapshot.qpos[:-7], before.qpos)
    lab.stop()


def test_an_interrupt_at_the_terminal_ends_a_decomposition(tmp_path):
    """Send SIGINT to a program that decomposes a mesh: it and its process end."""
    np.savez(tmp_path / "torus.npz", vertices=TORUS.vertices, faces=TORUS.faces)
    program = (
        "import sys, numpy; from manyworlds.spec.convex import CoacdCfg, convex_pieces\n"
        "mesh = numpy.load(sys.argv[1])\n"
        "report = lambda share: print('.', flush=True)\n"
        "convex_pieces(mesh['vertices'], mesh['faces'], CoacdCfg(), report)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "torus.npz")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
        # A program in the background of a script starts with SIGINT ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert b"KeyboardInterrupt" in errors
