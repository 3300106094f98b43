"""Model files of pages."""

import io
from xml.etree import ElementTree

import mujoco
import numpy as np
import pytest

from manyworlds.share.scene_files import check_same_motion, compile_files, compressed, page_files

PICTURE = pytest.importorskip("PIL.Image", reason="textures need the extra 'train'")

SCENE = """
<mujoco>
  <asset>
    <texture name="large" type="2d" file="large.png"/>
    <texture name="idle" type="2d" builtin="flat" width="8" height="8"/>
    <texture name="sky" type="skybox" builtin="flat" width="8" height="8"/>
    <material name="painted" texture="large"/>
    <material name="idle" texture="idle"/>
    <mesh name="used" file="used.obj"/>
    <mesh name="idle" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
  </asset>
  <worldbody>
    <body name="arm">
      <joint name="hinge" axis="0 1 0"/>
      <geom type="mesh" mesh="used" material="painted"/>
    </body>
  </worldbody>
  <actuator>
    <position name="servo" joint="hinge" kp="3" kv=".1"/>
  </actuator>
</mujoco>
"""
MESH = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


@pytest.fixture
def spec() -> mujoco.MjSpec:
    """Return a world with assets of which some are not used."""
    buffer = io.BytesIO()
    PICTURE.fromarray(np.zeros((900, 600, 3), np.uint8)).save(buffer, "PNG")
    assets = {"large.png": buffer.getvalue(), "used.obj": MESH}
    return mujoco.MjSpec.from_string(SCENE, assets=assets)


def test_unused_assets_are_left_out(spec):
    """Keep what something refers to, and the sky; the file compiles to the same physics."""
    model = spec.compile()
    files = page_files(spec)
    root = ElementTree.fromstring(files["scene.xml"])
    names = {element.get("name") for element in root.iterfind("asset/*")}
    assert names == {"large", "sky", "painted", "used"}
    assert set(files) == {"scene.xml", "assets/large.png", "assets/used.obj"}
    check_same_motion(model, compile_files(files), None)
    with PICTURE.open(io.BytesIO(files["assets/large.png"])) as picture:
        assert picture.size == (341, 512)
    small = compressed(files)
    assert set(small) == {"scene.xml", "assets/large.png", "assets/used.obj.gz"}


def test_servos_are_written_as_older_releases_read_them(spec):
    """Leave out the attribute `input`, which MuJoCo 3 refuses."""
    root = ElementTree.fromstring(page_files(spec)["scene.xml"])
    servos = [*root.iter("position"), *root.iter("general")]
    assert servos and not any("input" in servo.attrib for servo in servos)


def test_a_world_that_moves_differently_is_refused(spec):
    """Compare the motion of what was written with that of the world."""
    model = spec.compile()
    spec.joint("hinge").damping = [1.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="moves differently"):
        check_same_motion(model, spec.compile(), None)
