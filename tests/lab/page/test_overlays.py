"""What is drawn over a world."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manyworlds.lab.page import drawing as draw
from manyworlds.lab.page.capture import Contacts, Groups, Joints, Tendons, capture
from manyworlds.lab.page.wires import wire_points
from tests.lab.page.conftest import give
from tests.lab.page.test_page import pump

BOXES = """
<mujoco>
  <asset><mesh name="tetra" vertex="0 0 0  .2 0 0  0 .2 0  0 0 .2  .05 .05 .05"/></asset>
  <worldbody>
    <geom name="floor" type="plane" size="2 2 .1"/>
    <body name="a" pos="0 0 .1"><freejoint/><geom name="a" type="box" size=".1 .1 .1" mass="2"/>
      <geom name="paint" type="sphere" size=".12" contype="0" conaffinity="0" mass="0"/>
      <geom name="oneway" type="sphere" size=".02" contype="0" conaffinity="1" mass="0"/></body>
    <body name="b" pos="0 0 .3"><freejoint/><geom name="b" type="box" size=".1 .1 .1"/></body>
    <body name="c" pos="2 0 .1"><freejoint/><geom name="c" type="box" size=".1 .1 .1"/></body>
    <body name="m" pos="0 2 .5"><joint name="slide" type="slide" axis="0 0 1" range="-.1 .2"/>
      <geom name="m" type="mesh" mesh="tetra"/><site name="s" pos=".1 0 0"/></body>
    <body name="p" pos="0 2.5 .5"><joint name="hinge" axis="0 1 0" range="-90 90"/>
      <geom size=".05"/><site name="t"/></body>
  </worldbody>
  <tendon><spatial name="rope" range=".1 1" width=".01"><site site="s"/><site site="t"/></spatial>
  </tendon>
</mujoco>
"""


@pytest.fixture
def page(open_page):
    """A page of two boxes on each other, one beside, a tetrahedron that slides, and a tendon."""
    page = open_page(BOXES)
    pump(page, 300)
    return page


def captured(page, kind):
    """What is captured now."""
    return capture(page.lab.world.model, page.lab.engine.data, [kind])[kind]


def shapes_of(page, name: str):
    """What the layer of overlays shows of a shape."""
    return page.parts["OverlayPart"]._layer.handles.get((name,))


def test_contacts_are_balls_and_arrows(page):
    """Draw a ball and an arrow a contact; arrows are 1 mm a newton, and at most 1 m, long."""
    data = page.lab.engine.data
    for name in ("contact_points", "contact_forces"):
        page.parts["OverlayPart"].boxes[name].value = True
    page.lab.pause()
    pump(page, 2)
    pump(page, 2)
    assert data.ncon >= 8
    assert len(shapes_of(page, "sphere").batched_positions) == data.ncon
    assert len(shapes_of(page, "cone").batched_positions) == data.ncon
    found = captured(page, Contacts)
    weight = 9.81 * page.lab.world.model.body_subtreemass[0]
    floor = data.contact.pos[:, 2] < 0.05
    assert found.forces[floor].sum() == pytest.approx(
        weight - 9.81 * page.lab.world.model.body_mass[4:].sum(), rel=0.05
    )
    drawing = draw.Drawing()
    strong = Contacts(np.zeros((2, 3)), np.array([[0, 0, 1.0], [1.0, 0, 0]]), np.array([50, 5000]))
    draw.contact_forces(drawing, strong, 0.01)
    shaft, head = (instances for _, instances in drawing.shapes)
    total = 2 * shaft.scales[:, 2] + head.scales[:, 2]
    np.testing.assert_allclose(total, [0.05, 1.0])
    np.testing.assert_allclose(shaft.positions[0] / shaft.positions[0, 2], [0, 0, 1], atol=1e-9)
    np.testing.assert_allclose(head.positions[1] / head.positions[1, 0], [1, 0, 0], atol=1e-9)


def test_colliders_are_what_can_touch(page):
    """Choose one-sided colliders, too, and no paint; draw wires once and then move them only."""
    model = page.lab.world.model
    names = {model.geom(g).name for g in np.flatnonzero(draw.is_collider(model))}
    assert {"a", "oneway", "m"} <= names and "paint" not in names
    part = page.parts["OverlayPart"]
    part.boxes["collision"].value = True
    pump(page)
    handles = part._wires.handles
    assert set(handles) == {g for g in np.flatnonzero(draw.is_collider(model)) if g != 0}
    box = model.geom("b").id
    np.testing.assert_allclose(handles[box].position, page.lab.snapshot.geom_xpos[box])
    part.boxes["collision"].value = False
    pump(page)
    assert not any(handle.visible for handle in handles.values())


def test_wires_follow_the_shapes(page):
    """Give a box twelve edges, a hull the edges that MuJoCo collides with, a sphere its radius."""
    model = page.lab.world.model
    box = wire_points(model, model.geom("a").id)
    assert len(box) == 12 and np.abs(box).max() == pytest.approx(0.1)
    # The fifth vertex lies within the tetrahedron's hull.
    assert len(wire_points(model, model.geom("m").id)) == 6
    sphere = wire_points(model, model.geom("oneway").id)
    np.testing.assert_allclose(np.linalg.norm(sphere, axis=-1), 0.02)
    assert len(wire_points(model, 0)) == 0
    capsule = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><geom type='capsule' size='.1 .3'/></worldbody></mujoco>"
    )
    assert np.abs(wire_points(capsule, 0)).max(axis=(0, 1)) == pytest.approx([0.1, 0.1, 0.4])


def test_joints_have_axes_and_ranges(page):
    """Draw hinges and slides only; the hand of a hinge shows its angle."""
    model, snapshot = page.lab.world.model, page.lab.snapshot
    joints = captured(page, Joints)
    drawing = draw.Drawing()
    hinge = model.joint("hinge").id
    draw.joint_axes(drawing, model, snapshot, joints, np.arange(model.njnt), 0.1)
    # A slide: axis and range. A hinge: axis, arc, where it is, and 0. Free joints: nothing.
    assert len(drawing.lines) == 2 + 4
    axis, arc, now, zero = drawing.lines[-4:]
    np.testing.assert_allclose(axis[0, 1] - axis[0, 0], 0.2 * joints.axes[hinge])
    turn = np.cross(zero[0, 1] - zero[0, 0], now[0, 1] - now[0, 0]) @ joints.axes[hinge]
    assert np.arcsin(turn / 0.07**2) == pytest.approx(snapshot.qpos[-1], abs=1e-6)
    assert np.linalg.norm(arc[0, 0] - arc[-1, 1]) == pytest.approx(0.14, rel=1e-6)


def test_sites_and_tendons(page):
    """Draw three lines a site and a tube along each piece of a tendon."""
    model, snapshot = page.lab.world.model, page.lab.snapshot
    drawing = draw.Drawing()
    draw.sites(drawing, model, snapshot, np.arange(model.nsite))
    lines = drawing.lines[0]
    assert lines.shape == (6, 2, 3)
    np.testing.assert_allclose(lines[:3].mean(axis=1), np.tile(snapshot.site_xpos[0], (3, 1)))
    found = captured(page, Tendons)
    ends = snapshot.site_xpos[[0, 1]]
    np.testing.assert_allclose(found.points[0], ends, atol=1e-3)
    draw.tendons(drawing, model, snapshot, found)
    (shape, tube) = drawing.shapes[0]
    assert shape == ("cylinder",)
    assert 2 * tube.scales[0, 2] == pytest.approx(np.linalg.norm(ends[1] - ends[0]), abs=1e-3)


def test_islands_have_colours(page):
    """Colour the two boxes on each other alike, the third otherwise; Off restores everything."""
    part, model = page.parts["OverlayPart"], page.lab.world.model
    groups = captured(page, Groups)
    a, b, c = (model.body(name).id for name in "abc")
    assert groups.island[a] == groups.island[b] != groups.island[c] and groups.awake.all()
    give(part.coloring, "Island")
    pump(page, 2)
    pump(page)
    colors = shapes_of(page, "box").batched_colors
    assert (colors[0] == colors[1]).all() and (colors[0] != colors[2]).any()
    assert not any(handle.visible for handle, _ in page.context.view.meshes)
    give(part.coloring, "Off")
    pump(page)
    assert all(handle.visible for handle, _ in page.context.view.meshes)
    assert not shapes_of(page, "box").visible


def test_without_visuals_only_colliders_remain(page):
    """Hide visual shapes: what can touch is drawn in the colours of its type."""
    give(page.parts["OverlayPart"].visuals, False)
    pump(page, 2)
    assert len(shapes_of(page, "box").batched_positions) == 3
    assert len(shapes_of(page, "sphere").batched_positions) == 2  # not the paint


def test_overlays_cost_nothing_when_off(page, monkeypatch):
    """Ask the engine for nothing while all is off, and at most once a picture while one is on."""
    posts = []
    post = page.lab.engine.post
    monkeypatch.setattr(page.lab.engine, "post", lambda command: posts.append(1) or post(command))
    pump(page, 5)
    assert not posts
    page.parts["OverlayPart"].boxes["contact_points"].value = True
    for _ in range(4):
        page.update()
    assert len(posts) == 1  # the engine did not answer yet
    pump(page)
    assert len(posts) == 2
