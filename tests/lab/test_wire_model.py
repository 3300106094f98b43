"""The model as network clients know it."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manyworlds.lab import world_from_file
from manyworlds.lab.wire_model import wire_mjcf
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
    xml, files = wire_mjcf(world)
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


@pytest.mark.parametrize("robot", ["unitree_go1/go1.xml", "i2rt_yam/yam.xml"])
def test_robots_have_their_meshes(robot):
    """Send a robot's file with the names that clients know: all its shapes are the same."""
    ours, theirs = compiled(robot_file(robot))
    np.testing.assert_array_equal(theirs.mesh_vert, ours.mesh_vert)
    np.testing.assert_allclose(theirs.geom_size, ours.geom_size, rtol=1e-5)  # six digits
    np.testing.assert_allclose(theirs.body_mass, ours.body_mass, rtol=1e-5)
