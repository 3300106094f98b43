"""Places of new items: on the ground, and beside what is there."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manyworlds.entity import PropCfg
from manyworlds.lab import LiveLab, world_from_spec
from manyworlds.lab.scene.places import _geom_box
from manyworlds.lab.world.scene_files import scene_mjcf
from tests.robots import robot_file
from tests.spec.parity import find_model

GROUND = 0.25
FLOOR = f"""<mujoco><worldbody>
  <geom name="floor" type="plane" size="5 5 .1" pos="0 0 {GROUND}"/>
  <body name="shelf" pos="0 0 {GROUND + 1.5}"><geom name="board" type="box" size=".1 .1 .01"
    contype="0" conaffinity="0"/></body>
</worldbody></mujoco>"""
LEGGED = """<robot name="stilts"><link name="trunk"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><origin xyz="0 0 -0.4"/><geometry><box size=".1 .1 .8"/></geometry></collision>
</link></robot>"""
SOURCES = {
    "quadruped": lambda: "quadruped",
    "go1": lambda: robot_file("unitree_go1/go1.xml"),
    "g1": lambda: robot_file("unitree_g1/g1.xml"),
    "yam": lambda: robot_file("i2rt_yam/yam.xml"),
    "ant": lambda: find_model("gymnasium:envs/mujoco/assets/ant.xml"),
    "humanoid": lambda: find_model("dm_control:suite/humanoid.xml"),
}
STAND = {"quadruped", "go1", "g1"}


@pytest.fixture
def lab():
    """A lab of a floor that is not at height 0, and a shelf that collides with nothing."""
    lab = LiveLab(world_from_spec(mujoco.MjSpec.from_string(FLOOR)))
    yield lab
    lab.stop()


def contacts(lab: LiveLab, name: str) -> list[float]:
    """Distances of the contacts of an item with others [m]; negative ones are depths."""

    def read(model: mujoco.MjModel, data: mujoco.MjData) -> list[float]:
        found = []
        for contact in data.contact[: data.ncon]:
            names = [model.body(model.geom_bodyid[geom]).name for geom in contact.geom]
            if sum(body.startswith(f"{name}/") for body in names) == 1:
                found.append(float(contact.dist))
        return found

    return lab.loop.do(read, edits_model=False)


@pytest.mark.parametrize(
    "source", [pytest.param(s, marks=pytest.mark.slow) if s == "g1" else s for s in SOURCES]
)
def test_robots_stand_on_the_ground(lab, source):
    """Add a robot twice: neither is in the ground, nor in the other one; legs reach the ground."""
    for name in ("one", "two"):
        lab.scene.add(SOURCES[source](), name)
        assert min(contacts(lab, name), default=0.0) > -1e-3, name
        low = lab.scene.bounds(name).low[2] - GROUND
        assert low > -0.02, "what is only drawn may be a little in the ground"
        assert low < 0.02 or source not in STAND
    assert lab.scene["one"].pos[:2] == (0.0, 0.0) and lab.scene["two"].pos[1] == 0.0
    one, two = lab.scene.bounds("one"), lab.scene.bounds("two")
    assert two.low[0] > one.high[0] or lab.scene["two"].pos[2] > one.high[2]


def test_what_begins_below_its_origin_is_lifted(lab, tmp_path):
    """Add a URDF whose root is its trunk, and a mesh around its center: both lie on the ground."""
    (tmp_path / "stilts.urdf").write_text(LEGGED)
    corners = [(x, y, z) for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.3, 0.3)]
    vertices = "".join(f"v {x} {y} {z}\n" for x, y, z in corners)
    faces = "1 2 4 3,5 7 8 6,1 5 6 2,3 4 8 7,1 3 7 5,2 6 8 4"
    (tmp_path / "box.obj").write_text(vertices + "".join(f"f {f}\n" for f in faces.split(",")))
    assert lab.scene.add(tmp_path / "stilts.urdf", pos=None).pos[2] == pytest.approx(GROUND + 0.8)
    lab.scene.remove("stilts")
    item = lab.scene.add(tmp_path / "box.obj", quat=(np.sqrt(0.5), 0.0, np.sqrt(0.5), 0.0))
    assert item.pos[2] == pytest.approx(GROUND + 0.1, abs=1e-6), "it lies on its side"
    assert lab.scene.add(tmp_path / "box.obj").pos[0] > 0.5
    assert lab.scene.add(tmp_path / "box.obj", pos=(3.0, 0.0, 0.0)).pos == (3.0, 0.0, 0.0)


def test_a_robot_stands_on_hills(lab):
    """Add a quadruped where a height field is above the floor: it stands on the field."""
    terrains = pytest.importorskip("manyworlds.terrains")
    field = terrains.HeightFieldCfg.sample(lambda x, y: 0.5 + 0.1 * np.sin(4.0 * x), (4.0, 4.0), 65)
    lab.scene.add(field, "hills", pos=(0.0, 0.0, 0.0))
    item = lab.scene.add("quadruped")
    assert 0.5 < item.pos[2] < 0.62
    assert min(contacts(lab, "quadruped"), default=0.0) > -1e-3


def test_nothing_falls_onto_a_robot(lab):
    """Add an ant, whose file has it in the air, where an arm stands: it gets a place beside it."""
    arm = lab.scene.add(robot_file("i2rt_yam/yam.xml"), "arm")
    ant = lab.scene.add(find_model("gymnasium:envs/mujoco/assets/ant.xml"))
    assert lab.scene.bounds("ant").low[2] > lab.scene.bounds("arm").high[2] - 0.3
    assert ant.pos[0] > 0.5 > arm.pos[0] and ant.pos[2] == pytest.approx(GROUND)


SOFT = """<mujoco><size memory="40M"/><worldbody><flexcomp name="cube" type="grid" dim="3"
  count="3 3 3" spacing=".1 .1 .1" radius=".01" mass="1"><contact selfcollide="none"/>
  <edge equality="true"/></flexcomp></worldbody></mujoco>"""


def test_soft_bodies_have_places_and_memory(lab, tmp_path):
    """Add a soft cube twice: both lie on the ground, with the memory that they need."""
    (tmp_path / "cube.xml").write_text(SOFT)
    one, two = (lab.scene.add(tmp_path / "cube.xml", name) for name in ("one", "two"))
    assert one.pos[2] == pytest.approx(GROUND + 0.1) == two.pos[2]
    assert two.pos[0] >= one.pos[0] + 0.2 and lab.model.narena >= 40 * 2**20
    assert not any("memory" in note for note in lab.scene.notes)


TIGHT = """<mujoco><size memory="10K"/><worldbody><body><freejoint/><geom type="box"
  size=".1 .1 .1"/></body></worldbody></mujoco>"""


def test_the_memory_of_an_item_does_not_bound_the_world(lab, tmp_path):
    """Add boxes whose file has little memory: the world takes what MuJoCo takes by itself."""
    (tmp_path / "box.xml").write_text(TIGHT)
    free = lab.model.narena
    for name in ("one", "two", "three"):
        lab.scene.add(tmp_path / "box.xml", name)
    assert lab.model.narena >= free
    lab.step(200)
    assert lab.scene.bounds("one").low[2] == pytest.approx(GROUND, abs=0.01)
    exported = mujoco.MjSpec.from_string(scene_mjcf(lab.world)[0])
    assert exported.memory == -1


@pytest.mark.parametrize("mode", ["dynamic", "static"])
def test_copies_are_beside_each_other(lab, mode):
    """Duplicate a box three times: each copy has a place of its own, as high as the box."""
    box = PropCfg.primitive("box", (0.1, 0.1, 0.1), mode=mode)
    lab.scene.add(box, "box", pos=(0.0, 1.0, GROUND + 0.1))
    for name in ("a", "b", "c"):
        lab.scene.duplicate("box", name)
    boxes = [lab.scene.bounds(name) for name in ("box", "a", "b", "c")]
    for i, one in enumerate(boxes):
        assert one.low[2] >= GROUND - 1e-9
        for other in boxes[:i]:
            apart = [a >= b - 1e-9 for a, b in zip(one.low, other.high, strict=True)]
            assert any(apart)
    assert boxes[1].low[2] == pytest.approx(GROUND)


def test_boxes_are_as_small_as_can_be():
    """Compare boxes around turned shapes with those around points on their surfaces."""
    rng = np.random.default_rng(0)
    corners = np.array([[0, 0, 0], [0.3, 0, 0], [0, 0.2, 0], [0, 0, 0.1]])
    spec = mujoco.MjSpec()
    spec.add_mesh(name="tip", uservert=corners.ravel().tolist())
    kinds = ("MESH", "SPHERE", "CAPSULE", "CYLINDER", "ELLIPSOID", "BOX")
    for kind in kinds:
        body = spec.worldbody.add_body(
            pos=rng.normal(size=3).tolist(), quat=rng.normal(size=4).tolist()
        )
        made = body.add_geom(type=getattr(mujoco.mjtGeom, f"mjGEOM_{kind}"), size=(0.1, 0.2, 0.3))
        made.meshname = "tip" if kind == "MESH" else ""
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    directions = rng.normal(size=(4000, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    for geom, kind in enumerate(kinds):
        place, turn = data.geom_xpos[geom], data.geom_xmat[geom]
        if kind == "MESH":
            points = data.xpos[1] + corners @ data.xmat[1].reshape(3, 3).T
        else:  # where rays from far away to the center meet the surface
            shape = (place, turn, model.geom_size[geom])
            kind_code = model.geom_type[geom]
            far = place + 5.0 * directions
            gaps = [
                mujoco.mju_rayGeom(*shape, start, -d, kind_code, None)
                for start, d in zip(far, directions, strict=True)
            ]
            points = far - np.array(gaps)[:, None] * directions
        low, high = _geom_box(model, geom, place, turn.reshape(3, 3))
        assert (points > low - 1e-6).all() and (points < high + 1e-6).all(), kind
        close = 1e-6 if kind == "MESH" else 0.03
        np.testing.assert_allclose(points.min(axis=0), low, atol=close, err_msg=kind)
        np.testing.assert_allclose(points.max(axis=0), high, atol=close, err_msg=kind)
