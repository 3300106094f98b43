"""Articulations that are built in a live world, and meshes that are decomposed there."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manyworlds.lab import CompileError, LabCfg, LiveLab, VerbError, world_from_spec

PENDULUM = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="crane/base" pos="0 0 1">
      <geom name="crane/base" type="box" size=".1 .1 .02"/>
      <body name="crane/arm" pos="0 0 -.1">
        <joint name="crane/swing" axis="0 1 0" range="-1 1" damping=".1"/>
        <geom name="crane/arm" type="capsule" size=".03 .2" mass=".5"/>
        <geom name="crane/bob" type="sphere" size=".08" pos="0 0 -.3" mass="2"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="crane/swing" joint="crane/swing" kp="20" dampratio="1"
              forcelimited="true" forcerange="-5 5"/>
  </actuator>
</mujoco>
"""


def lab_of(xml: str) -> LiveLab:
    """A lab of a world, which waits for steps."""
    return LiveLab(world_from_spec(mujoco.MjSpec.from_string(xml)), LabCfg(mode="direct"))


@pytest.fixture
def lab():
    """A lab with a floor."""
    lab = lab_of(
        '<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/></worldbody></mujoco>'
    )
    yield lab
    lab.stop()


def build(lab: LiveLab) -> None:
    """Build the pendulum, element by element."""
    verbs = lab.verbs
    base = verbs.add_body(name="crane", pos=(0, 0, 1), size=(0.1, 0.1, 0.02))
    assert base["name"] == "crane/base"
    arm = verbs.add_body(
        name="arm",
        parent="crane/base",
        pos=(0, 0, -0.1),
        shape="capsule",
        size=(0.03, 0.2, 0),
        mass=0.5,
    )
    body = arm["name"]
    verbs.add_geom(
        body=body, name="bob", shape="sphere", size=(0.08, 0, 0), pos=(0, 0, -0.3), mass=2.0
    )
    verbs.add_joint(body=body, name="swing", axis=(0, 1, 0), range=(-1, 1))
    verbs.add_actuator(joint="crane/swing", gain=20.0, limit=5.0)


def test_a_built_robot_steps_like_its_file(lab):
    """Build a pendulum: its model, and its steps under control, are those of the same MJCF."""
    build(lab)
    model = mujoco.MjModel.from_xml_string(PENDULUM)
    for name in ("body_mass", "body_inertia", "body_ipos", "jnt_range", "dof_damping"):
        np.testing.assert_array_equal(getattr(lab.model, name), getattr(model, name))
    assert lab.scene["crane"].kind == "robot" and lab.scene["crane"].source == "built in the lab"
    data = mujoco.MjData(model)
    data.ctrl[:] = 0.7
    lab["crane"].write("panel", {"swing": 0.7})
    for _ in range(50):
        mujoco.mj_step(model, data)
    np.testing.assert_array_equal(lab.step(50).qpos, data.qpos)
    assert abs(data.qpos[0]) > 0.1


def test_each_element_is_undone_alone(lab):
    """Undo the actuator, then the joint: the robot is a prop, then a fixed one; redo both."""
    build(lab)
    lab.verbs.undo()
    assert lab.model.nu == 0 and lab.scene["crane"].kind == "body" and lab.model.nv == 1
    lab.verbs.undo()
    assert lab.model.nv == 0 and lab.model.ngeom == 4
    lab.verbs.redo()
    lab.verbs.redo()
    assert lab.model.nu == 1 and "crane" in lab.robots


def test_elements_are_removed(lab):
    """Remove a geom, and a body with the joint and the actuator on it, but not a base."""
    build(lab)
    lab.verbs.remove_element(kind="geom", name="crane/bob")
    assert lab.model.ngeom == 3 and lab.model.nu == 1
    lab.verbs.remove_element(kind="body", name="crane/arm")
    assert (lab.model.nv, lab.model.nu, lab.model.nbody) == (0, 0, 2)
    with pytest.raises(VerbError, match="remove the item 'crane'"):
        lab.verbs.remove_element(kind="body", name="crane/base")


def test_wrong_elements_change_nothing(lab):
    """Refuse a missing parent, a name that is taken, a second joint, and what MuJoCo refuses."""
    build(lab)
    before = lab.model
    verbs = lab.verbs
    for wrong, text in (
        (lambda: verbs.add_body(name="x", parent="crane/arn"), "did you mean 'crane/arm'"),
        (lambda: verbs.add_body(name="arm", parent="crane/base"), "already: choose another name"),
        (lambda: verbs.add_body(name="crane"), "The scene has an item 'crane'"),
        (lambda: verbs.add_geom(body="crane/arm", name="a/b"), "no valid name"),
        (lambda: verbs.add_joint(body="crane/arm", name="free", kind="free"), "more than 6 dofs"),
        (lambda: verbs.add_actuator(joint="swing"), "There is no joint 'swing'"),
        (lambda: verbs.remove_decomposition(geom="crane/bob"), "no convex pieces"),
        (lambda: verbs.decompose_mesh(geom="crane/bob"), "has no mesh"),
        (lambda: verbs.decompose_mesh(geom="crane/bop"), "did you mean 'crane/bob'"),
    ):
        with pytest.raises((VerbError, CompileError, ValueError, KeyError), match=text):
            wrong()
        assert lab.model is before
    with pytest.raises(VerbError, match="one of box, sphere"):
        lab.call("add_geom", body="crane/arm", name="x", shape="cone")


@pytest.mark.slow
def test_pieces_of_a_mesh_collide_in_its_place():
    """Decompose a ring: a ball falls through it, and rests on its hull again without pieces."""
    pytest.importorskip("coacd", reason="needs the extra 'meshes'")
    trimesh = pytest.importorskip("trimesh", reason="needs the extra 'meshes'")
    torus = trimesh.creation.torus(0.3, 0.08, major_sections=24, minor_sections=10)
    spec = mujoco.MjSpec()
    vertices, faces = torus.vertices.ravel().tolist(), torus.faces.ravel().tolist()
    spec.add_mesh(name="ring/ring", uservert=vertices, userface=faces)
    body = spec.worldbody.add_body(name="ring/base", pos=(0, 0, 0.5))
    body.add_geom(
        name="ring/ring",
        type=mujoco.mjtGeom.mjGEOM_MESH,
        meshname="ring/ring",
        pos=(0.1, 0, 0),
        friction=(0.7, 0.1, 0.1),
        mass=2.0,
    )
    ball = spec.worldbody.add_body(name="ball", pos=(0.1, 0, 0.8))
    ball.add_freejoint()
    ball.add_geom(name="ball", type=mujoco.mjtGeom.mjGEOM_SPHERE, size=(0.1, 0, 0))
    lab = LiveLab(world_from_spec(spec), LabCfg(mode="direct"))
    model = lab.model
    assert lab.step(500).qpos[2] > 0.6
    reply = lab.verbs.decompose_mesh(geom="ring/ring", threshold=0.2)
    assert reply["state"] == "done" and reply["pieces"] >= 3
    names = [lab.model.geom(i).name for i in range(lab.model.ngeom)]
    pieces = [i for i, name in enumerate(names) if "_piece_" in name]
    assert len(pieces) == reply["pieces"]
    np.testing.assert_array_equal(lab.model.body_mass, model.body_mass)
    np.testing.assert_allclose(lab.model.body_inertia, model.body_inertia, rtol=1e-9)
    np.testing.assert_array_equal(lab.model.geom_friction[pieces], [[0.7, 0.1, 0.1]] * len(pieces))
    assert lab.step(500).qpos[2] < 0.4
    lab.verbs.reset()
    lab.verbs.remove_decomposition(geom="ring/ring")
    assert lab.model.ngeom == 2 and lab.model.nmesh == 1
    assert lab.step(500).qpos[2] > 0.6
    lab.stop()
