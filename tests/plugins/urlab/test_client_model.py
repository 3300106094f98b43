"""The model as URLab's clients know it."""

from __future__ import annotations

import subprocess
import sys

import mujoco
import numpy as np
import pytest

from manyworlds.lab import world_from_file
from manyworlds.lab.errors import VerbError
from manyworlds.lab.verb_methods import LabVerbs
from manyworlds.lab.world.model_facts import binary_model, element_names
from manyworlds.lab.world.scene_files import scene_mjcf
from manyworlds.plugins.urlab.client_model import client_mjcf, export_model
from manyworlds.plugins.urlab.names import client_names
from tests.robots import robot_file
from tests.spec.test_export import wavefront

MODEL = """<mujoco model="go"><asset>
  <mesh name="x" file="a/part.obj"/><mesh name="y" file="b/part.obj"/>
  <mesh name="z" file="go_part.obj"/><mesh name="go_z" file="go_go_part.obj"/>
  <texture name="sky" type="cube" fileright="go_sky.png" fileleft="sky.png"/>
  <texture name="flat" type="2d" file="sky.png"/>
</asset><worldbody><body name="b"><joint name="j"/>
  <geom type="mesh" mesh="x"/><geom type="mesh" mesh="y"/>
  <geom type="mesh" mesh="z"/><geom type="mesh" mesh="go_z"/>
</body></worldbody><actuator><motor name="m" joint="j"/></actuator></mujoco>"""


def compiled(path) -> tuple[mujoco.MjModel, mujoco.MjModel]:
    """Return the model of a file, and the one that clients compile."""
    world = world_from_file(path)
    xml, files = client_mjcf(*scene_mjcf(world), world.robots)
    assert set(files) == {name for name in files if f'"{name}"' in xml}, "no file for nobody"
    return world.model, mujoco.MjSpec.from_string(xml, assets=files).compile()


def test_files_of_similar_names_stay_apart(tmp_path):
    """Put a prefix before names of files that have it already, or are equal in two folders."""
    image = pytest.importorskip("PIL.Image", reason="needs Pillow")
    for size, file in enumerate(("a/part.obj", "b/part.obj", "go_part.obj", "go_go_part.obj"), 1):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_bytes(wavefront(float(size)))
    image.new("RGB", (6, 6), (200, 10, 20)).save(tmp_path / "sky.png")
    image.new("RGB", (6, 6), (20, 10, 200)).save(tmp_path / "go_sky.png")
    (tmp_path / "m.xml").write_text(MODEL)
    ours, theirs = compiled(tmp_path / "m.xml")
    np.testing.assert_array_equal(theirs.geom_rbound, ours.geom_rbound)
    assert len(set(theirs.geom_rbound.tolist())) == 4
    np.testing.assert_array_equal(theirs.tex_data, ours.tex_data)
    assert theirs.joint("go_j").id == ours.joint("j").id


@pytest.mark.slow
@pytest.mark.parametrize("robot", ["unitree_go1/go1.xml", "i2rt_yam/yam.xml"])
def test_robots_have_their_meshes(robot):
    """Send a robot's file with the names that clients know: all its shapes are the same."""
    ours, theirs = compiled(robot_file(robot))
    np.testing.assert_array_equal(theirs.mesh_vert, ours.mesh_vert)
    np.testing.assert_allclose(theirs.geom_size, ours.geom_size, rtol=1e-5)  # six digits
    np.testing.assert_allclose(theirs.body_mass, ours.body_mass, rtol=1e-5)


PAIR = """<mujoco><worldbody>
  <body name="go/base"><freejoint name="go/root"/><geom name="go/a/b" size=".1"/>
    <geom name="go/a_b" size=".1"/><site name="go/imu"/>
    <body><joint/><joint name="jnt_1"/><geom size=".1"/></body></body>
  <body pos="1 0 0"><geom size=".1"/><body name="g1/leg">
    <joint name="g1/hip"/><geom size=".1"/></body></body>
  <body name="stone" pos="2 0 0"><freejoint/><geom size=".1"/></body>
</worldbody>
<actuator><motor joint="g1/hip"/></actuator>
<sensor><gyro site="go/imu"/><jointpos joint="g1/hip"/><clock name="time"/></sensor></mujoco>"""
ROBOTS = {"go": "go/", "g1": "g1/"}


def test_clients_know_names_of_their_own():
    """Turn all names into those of clients and back: each element has one, and it is its own."""
    model = mujoco.MjModel.from_xml_string(PAIR)
    names = client_names(model, ROBOTS)
    names.check(model)
    assert names.wire["body"][:2] == ["world", "go_base"] and names.wire["jnt"][0] == "go_root"
    assert names.wire["geom"][:2] == ["go_a/b", "go_a_b"]  # two that would have one name
    for kind in ("body", "jnt", "geom", "site", "actuator", "sensor"):
        back = dict(zip(names.wire[kind], names.live[kind], strict=True))
        known = [name for name in element_names(model, kind) if name]
        assert [back[name] for name in names.wire[kind] if back[name] in known] == known


def test_elements_without_a_name_have_owners_and_names():
    """Leave names out: the body, the joint, or what is moved or measured tells whose it is."""
    model = mujoco.MjModel.from_xml_string(PAIR)
    names = client_names(model, ROBOTS)
    assert names.owners["body"] == [None, "go", "go", "g1", "g1", None]
    assert names.owners["jnt"] == ["go", "go", None, "g1", None]
    assert names.owners["geom"] == ["go", "go", "go", "g1", "g1", None]
    assert names.owners["actuator"] == ["g1"] and names.wire["actuator"] == ["g1_actuator_0"]
    assert names.owners["sensor"] == ["go", "g1", None]
    assert names.wire["sensor"] == ["go_sensor_0", "g1_sensor_1", "time"]
    assert names.wire["jnt"] == ["go_root", "go_jnt_1", "jnt_1", "g1_hip", "jnt_4"]


@pytest.mark.parametrize(
    ("robots", "reason"),
    [
        ({"go": "go/", "go_1": "g1/"}, "cannot tell 'go' and 'go_1' apart, because 'go_' begins"),
        ({"go": "go/", "go_1": "stone"}, "cannot tell 'go' and 'go_1' apart"),
        ({"go": "stone", "go_1": "go/"}, ""),  # clients know no prefix of a loose body
        ({"st": "go/", "sto": "g1/"}, ""),
    ],
)
def test_only_what_clients_mix_up_is_refused(robots, reason):
    """Check names of robots: only elements that begin like another robot's are refused."""
    model = mujoco.MjModel.from_xml_string(PAIR)
    names = client_names(model, robots)
    if reason:
        with pytest.raises(ValueError, match=reason):
            names.check(model)
    else:
        names.check(model)


@pytest.mark.parametrize("rebuilds", [False, True])
def test_values_may_change_during_an_export(rebuilds):
    """Change the model, or the robots, between any two verbs: only the robots matter."""
    mjb = binary_model(mujoco.MjModel.from_xml_string(PAIR))
    names = ["go"]

    def call(verb, **fields):
        if verb == "export_model":
            return {"mjb": mjb, "mjcf": "", "files": {}}
        names.append(names[-1] + "x" if rebuilds else "go")
        return {"robots": {names[-1]: {"prefix": "go/"}}, "model_version": len(names)}

    if rebuilds:
        with pytest.raises(VerbError, match="rebuilt all the time"):
            export_model(LabVerbs(call))
    else:
        renamed = export_model(LabVerbs(call))["mjb"]
        model = mujoco.MjModel.from_binary_path("go.mjb", {"go.mjb": renamed})
        assert model.body("go_base").id == 1


def test_the_end_of_a_program_waits_for_an_export():
    """End a program while the model is exported: it is exported to the end, and nothing crashes."""
    program = """
import threading, time
from manyworlds.plugins.urlab import model_files

def export():
    time.sleep(0.3)
    print("exported")

server = threading.Thread(target=model_files._start, args=(export,), daemon=True)
server.start()
server.join()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "exported\n"), ended.stderr
