"""Overlays that are drawn over a world."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manyworlds.lab.page.overlay_controls import OFF, ON
from manyworlds.viewer.browser.geom_meshes import geom_surface
from manyworlds.viewer.browser.overlays import shapes as draw
from manyworlds.viewer.browser.overlays.captures import (
    CapturedContacts,
    CapturedGroups,
    CapturedJoints,
    CapturedTendons,
    capture,
)
from manyworlds.viewer.browser.wireframes import wireframe_points
from tests.lab.page.conftest import give
from tests.lab.page.test_page import TWO, iterate_once

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
    iterate_once(page, 300)
    return page


def captured(page, kind):
    """Present captures."""
    return capture(page.lab.world.model, page.lab.loop.data, [kind])[kind]


def shapes_of(page, name: str):
    """Instances of a shape in the layer of overlays."""
    return page.parts["OverlayPart"].overlays.shapes.handles.get((name,))


def test_contacts_are_discs_and_arrows(page):
    """Draw a disc and an arrow a contact; an arrow's length is its force's, and at most 1 m."""
    data, part = page.lab.loop.data, page.parts["OverlayPart"]
    part.boxes["tendons"].value = False
    for name in ("contact_points", "contact_forces"):
        part.boxes[name].value = True
    page.lab.pause()
    iterate_once(page, 2)
    iterate_once(page, 2)
    assert data.ncon >= 8
    assert len(shapes_of(page, "cylinder").batched_positions) == 2 * data.ncon
    assert len(shapes_of(page, "cone").batched_positions) == data.ncon
    found = captured(page, CapturedContacts)
    weight = 9.81 * page.lab.world.model.body_subtreemass[0]
    floor = data.contact.pos[:, 2] < 0.05
    assert found.along_normals[floor, 2].sum() == pytest.approx(
        weight - 9.81 * page.lab.world.model.body_mass[4:].sum(), rel=0.05
    )
    drawing = draw.Drawing()
    forces = np.array([[0, 0, 50.0], [5000.0, 0, 0], [0, 0, 0]])
    draw.contact_forces(drawing, np.zeros((3, 3)), forces, 0.001, 0.01)
    shaft, head = (instances for _, instances in drawing.shapes)
    total = 2 * shaft.scales[:, 2] + head.scales[:, 2]
    np.testing.assert_allclose(total, [0.05, 1.0])
    np.testing.assert_allclose(shaft.positions[0] / shaft.positions[0, 2], [0, 0, 1], atol=1e-9)
    np.testing.assert_allclose(head.positions[1] / head.positions[1, 0], [1, 0, 0], atol=1e-9)


def test_forces_are_in_the_world(page):
    """Push a box sideways: friction is in the forces, in the world's axes, not in the normal's."""
    data, model = page.lab.loop.data, page.lab.world.model
    body = model.body("c").id
    page.lab.post(lambda m, d: d.xfrc_applied.__setitem__((body, 0), 20.0))
    iterate_once(page, 300)
    found = captured(page, CapturedContacts)
    box = [model.geom("c").id in pair for pair in data.contact.geom]
    np.testing.assert_allclose(
        found.forces[box].sum(axis=0),
        [-20.0, 0.0, 9.81 * model.body_mass[body]],
        rtol=0.02,
        atol=0.1,
    )
    assert np.abs(found.along_normals[box, :2]).max() < 1e-9
    part = page.parts["OverlayPart"]
    part.boxes["contact_forces"].value = True
    directions = []
    for full in (False, True):
        part.full_force.value = full
        iterate_once(page)
        iterate_once(page)
        directions.append(shapes_of(page, "cone").batched_wxyzs.copy())
    assert np.abs(directions[0] - directions[1]).max() > 0.05


def test_colliders_are_what_can_touch(page):
    """Choose one-sided colliders, too, and no paint; draw wires once and then move them only."""
    model = page.lab.world.model
    names = {model.geom(g).name for g in np.flatnonzero(draw.is_collider(model))}
    assert {"a", "oneway", "m"} <= names and "paint" not in names
    part = page.parts["OverlayPart"]
    part.boxes["collision"].value = True
    iterate_once(page)
    handles = part.overlays.wireframes.handles
    assert set(handles) == {g for g in np.flatnonzero(draw.is_collider(model)) if g != 0}
    box = model.geom("b").id
    np.testing.assert_allclose(handles[box].position, page.lab.snapshot.geom_xpos[box])
    part.boxes["collision"].value = False
    iterate_once(page)
    assert not any(handle.visible for handle in handles.values())


def test_shapes_have_the_colors_of_their_types(page):
    """Make boxes cyan, meshes magenta and round shapes green."""
    model = page.lab.world.model
    colors = {
        name: draw.geom_lines(model, model.geom(name).id)[1][0] for name in ("a", "m", "oneway")
    }
    red, green, blue = colors["a"]
    assert min(green, blue) > 2 * red
    red, green, blue = colors["m"]
    assert min(red, blue) > 2 * green
    red, green, blue = colors["oneway"]
    assert green > 1.5 * max(red, blue)


def test_wires_follow_the_shapes(page):
    """Give a box twelve edges, a hull the edges that MuJoCo collides with, a sphere its radius."""
    model = page.lab.world.model
    box = wireframe_points(model, model.geom("a").id)
    assert len(box) == 12 and np.abs(box).max() == pytest.approx(0.1)
    # The fifth vertex lies within the tetrahedron's hull.
    assert len(wireframe_points(model, model.geom("m").id)) == 6
    sphere = wireframe_points(model, model.geom("oneway").id)
    np.testing.assert_allclose(np.linalg.norm(sphere, axis=-1), 0.02)
    capsule = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><geom type='capsule' size='.1 .3'/></worldbody></mujoco>"
    )
    assert np.abs(wireframe_points(capsule, 0)).max(axis=(0, 1)) == pytest.approx([0.1, 0.1, 0.4])


def in_world(model, snapshot, joints, joint: int, moves: bool) -> np.ndarray:
    """Ends of a joint's lines in the world."""
    keys, positions, quats = draw.joint_frames(model, snapshot, joints, np.array([joint]))
    at = keys.index((joint, moves))
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, quats[at])
    return positions[at] + draw.joint_lines(model, joint, 0.1, moves)[0] @ matrix.reshape(3, 3).T


def test_joints_have_axes_and_ranges(page):
    """Draw axis, range and angle of a hinge, axis and range of a slide, where they are."""
    page.lab.post(lambda model, data: data.qpos.__setitem__(slice(-2, None), (0.05, 0.4)))
    page.lab.pause()
    page.lab.post(mujoco.mj_forward)
    iterate_once(page)
    model, snapshot, joints = (
        page.lab.world.model,
        page.lab.snapshot,
        captured(page, CapturedJoints),
    )
    hinge, slide = model.joint("hinge").id, model.joint("slide").id
    anchor, axis = joints.anchors[hinge], joints.axes[hinge]
    still = in_world(model, snapshot, joints, hinge, moves=False)
    along, arc, zero = still[0], still[1:-1], still[-1]
    np.testing.assert_allclose(along[1] - along[0], 0.2 * axis, atol=1e-9)
    (now,) = in_world(model, snapshot, joints, hinge, moves=True)
    turn = np.cross(zero[1] - zero[0], now[1] - now[0]) @ axis
    assert np.arcsin(turn / 0.07**2) == pytest.approx(snapshot.qpos[-1], abs=1e-6)
    # The range is half a turn, and stays with the body before the joint.
    assert np.linalg.norm(arc[0, 0] - arc[-1, 1]) == pytest.approx(0.14, rel=1e-6)
    np.testing.assert_allclose(arc[:, 0].mean(axis=0)[0], anchor[0], atol=0.1)
    (reach,) = in_world(model, snapshot, joints, slide, moves=False)
    expected = joints.anchors[slide] + np.outer([-0.1 - 0.05, 0.2 - 0.05], joints.axes[slide])
    np.testing.assert_allclose(reach, expected, atol=1e-9)


def test_only_hinges_and_slides_have_axes(page):
    """Switch the joints on: no lines for free joints; what stands sends nothing more."""
    part = page.parts["OverlayPart"]
    part.boxes["joints"].value = True
    page.lab.pause()
    iterate_once(page, 2)
    iterate_once(page)
    model = page.lab.world.model
    hinge, slide = model.joint("hinge").id, model.joint("slide").id
    handles = part.overlays.joints.handles
    assert set(handles) == {(j, m) for j in (hinge, slide) for m in (False, True)}


@pytest.mark.parametrize("overlay", ["joints", "sites", "collision", "contact_forces"])
def test_overlays_of_what_stands_send_nothing(page, monkeypatch, overlay):
    """Pause a world whose overlay is on: further pictures send no line and no pose again."""
    page.parts["OverlayPart"].boxes[overlay].value = True
    page.lab.pause()
    for _ in range(4):
        iterate_once(page)
    sent = []
    monkeypatch.setattr(page.server._websock_server, "queue_message", sent.append)
    for _ in range(4):
        iterate_once(page)
    kinds = {type(message).__name__ for message in sent}
    assert not [kind for kind in kinds if "Scene" in kind or "Set" in kind], kinds


def test_what_moves_sends_poses_only(page, monkeypatch):
    """Let a hinge swing: its lines are moved, not sent again."""
    page.parts["OverlayPart"].boxes["joints"].value = True
    page.lab.post(lambda model, data: data.qvel.__setitem__(-1, 2.0))
    iterate_once(page, 2)
    iterate_once(page)
    sent = []
    monkeypatch.setattr(page.server._websock_server, "queue_message", sent.append)
    iterate_once(page, 20)
    iterate_once(page, 20)
    own = [message for message in sent if "/over/joint" in getattr(message, "name", "")]
    assert {type(message).__name__ for message in own} == {
        "SetOrientationMessage",
        "SetPositionMessage",
    } or {type(message).__name__ for message in own} == {"SetOrientationMessage"}


def test_robots_have_overlays_of_their_own(open_page):
    """Switch joints on for one of two robots, then for all, then off for one."""
    page = open_page(TWO, robots=("one", "two"))
    part, model = page.parts["OverlayPart"], page.lab.world.model

    def shown():
        return np.flatnonzero(part._wanted("joints", model.jnt_bodyid)).tolist()

    part.own["one"]["joints"].value = ON
    assert shown() == [0] and part.enabled == {"joints"}
    part.boxes["joints"].value = True
    assert shown() == [0, 1]
    part.own["one"]["joints"].value = OFF
    assert shown() == [1]
    part.toggle("joints")
    part.toggle("joints")
    assert shown() == [0, 1], "what all get, each gets"


def test_sites_and_tendons(page):
    """Draw three lines a site and a tube along each piece of a tendon."""
    model, snapshot = page.lab.world.model, page.lab.snapshot
    part = page.parts["OverlayPart"]
    part.boxes["sites"].value = True
    iterate_once(page)
    handle = part.overlays.sites.handles[0]
    np.testing.assert_allclose(handle.position, page.lab.snapshot.site_xpos[0], atol=1e-6)
    lines, _ = draw.site_lines(model, 0, 0.04)
    assert lines.shape == (3, 2, 3)
    np.testing.assert_allclose(lines[:, 1] - lines[:, 0], 0.08 * np.eye(3))
    drawing = draw.Drawing()
    found = captured(page, CapturedTendons)
    ends = snapshot.site_xpos[[0, 1]]
    np.testing.assert_allclose(found.points[0], ends, atol=1e-3)
    draw.tendons(drawing, model, snapshot, found)
    (shape, tube) = drawing.shapes[0]
    assert shape == ("cylinder",)
    assert 2 * tube.scales[0, 2] == pytest.approx(np.linalg.norm(ends[1] - ends[0]), abs=1e-3)


def test_islands_have_colors(page):
    """Colour the two boxes on each other alike, the third otherwise; Off restores everything."""
    part, model = page.parts["OverlayPart"], page.lab.world.model
    groups = captured(page, CapturedGroups)
    a, b, c = (model.body(name).id for name in "abc")
    assert groups.island[a] == groups.island[b] != groups.island[c] and groups.awake.all()
    give(part.coloring, "Island")
    iterate_once(page, 2)
    iterate_once(page)
    colors = shapes_of(page, "box").batched_colors
    assert (colors[0] == colors[1]).all() and (colors[0] != colors[2]).any()
    assert not any(handle.visible for handle, _ in page.context.view.meshes)
    give(part.coloring, "Off")
    iterate_once(page)
    assert all(handle.visible for handle, _ in page.context.view.meshes)
    assert not shapes_of(page, "box").visible


def test_icons_switch_overlays(page):
    """Click icons in a browser: the overlay is on, and the row says so with its key."""
    part = page.parts["OverlayPart"]
    row = part.boxes["joints"]._row
    assert "Joints (4)" in row.html.content and "Shown: Visual geoms, Tendons<" in row.html.content
    page.context.answers["switch"]("browser 1", {"name": "joints"})
    assert part.boxes["joints"].value
    assert "Shown: Visual geoms, Joints, Tendons<" in row.html.content
    page.context.answers["switch"]("browser 1", {"name": "joints"})
    page.context.answers["switch"]("browser 1", {"name": "see_through"})
    assert not part.boxes["joints"].value and part.see_through.value


def test_one_can_see_through(page):
    """See through the world: its shapes keep their colors and let light through."""
    part, model = page.parts["OverlayPart"], page.lab.world.model
    part.see_through.value = True
    iterate_once(page, 2)
    iterate_once(page)
    boxes = shapes_of(page, "box")
    np.testing.assert_allclose(boxes.batched_opacities, 0.3)
    assert not any(handle.visible for handle, _ in page.context.view.meshes)
    np.testing.assert_allclose(draw.own_colors(model)[model.geom("a").id], (0.5, 0.5, 0.5, 1.0))


def test_groups_of_geoms_can_be_hidden(page):
    """Hide the group of all geoms and show it again; overlays go on."""
    view = page.context.view
    before = len(view.meshes)
    view.show_group(0, False)
    iterate_once(page)
    assert {body_at(0, np.zeros(3)) for _, body_at in view.meshes} == {4, 5}  # their sites
    view.show_group(0, True)
    iterate_once(page)
    assert len(view.meshes) == before


def test_sleepers_are_dim(open_page):
    """Let boxes fall asleep: the color of those that sleep is darker than when awake."""
    page = open_page(BOXES.replace("<mujoco>", "<mujoco><option><flag sleep='enable'/></option>"))
    give(page.parts["OverlayPart"].coloring, "Body")
    iterate_once(page, 2)
    iterate_once(page)
    awake = shapes_of(page, "box").batched_colors.copy()
    iterate_once(page, 3000)
    iterate_once(page)
    groups = captured(page, CapturedGroups)
    boxes = [page.lab.world.model.body(name).id for name in "abc"]
    assert not groups.awake[boxes].any()
    asleep = shapes_of(page, "box").batched_colors
    assert (asleep.max(axis=1) < 0.6 * awake.max(axis=1)).all()


def test_without_visuals_only_colliders_remain(page):
    """Hide visual shapes: what can touch is drawn in the colors of its type."""
    page.parts["OverlayPart"].visuals.value = False
    iterate_once(page, 2)
    assert len(shapes_of(page, "box").batched_positions) == 3
    assert len(shapes_of(page, "sphere").batched_positions) == 2  # not the paint


def test_overlays_cost_nothing_when_off(page, monkeypatch):
    """Ask the loop for nothing while all is off, and once a picture while one is on."""
    page.parts["OverlayPart"].boxes["tendons"].value = False
    page.update()
    posts = []
    post = page.lab.loop.post

    def count(command, **options):
        posts.append(1)
        return post(command, **options)

    monkeypatch.setattr(page.lab.loop, "post", count)
    iterate_once(page, 5)
    assert not posts
    page.parts["OverlayPart"].boxes["contact_points"].value = True
    for _ in range(4):
        page.update()
    assert len(posts) == 4


STRANGERS = """
<mujoco>
  <extension><plugin plugin="mujoco.sdf.torus"><instance name="torus"/></plugin></extension>
  <asset><mesh name="torus"><plugin instance="torus"/></mesh></asset>
  <worldbody>
    <geom type="plane" size="0 0 .1"/>
    <geom name="ramp" type="plane" size="0 0 .1" pos="-2 0 0" euler="0 60 0"/>
    <geom name="slab" type="plane" size=".5 .5 .1" pos="0 2 .5"/>
    <body pos="0 0 1"><freejoint/>
      <geom name="ring" type="sdf" mesh="torus"><plugin instance="torus"/></geom></body>
    <site name="top" pos="1 0 2"/>
    <body pos="1 0 1"><joint axis="0 1 0"/><geom name="arm" size=".1"/><site name="tip"/></body>
  </worldbody>
  <tendon><spatial name="muscle"><site site="top"/><site site="tip"/></spatial></tendon>
</mujoco>
"""


def test_what_mujoco_draws_is_drawn(open_page):
    """Show a signed distance field, planes of all kinds and a tendon: each of them is drawn."""
    page = open_page(STRANGERS)
    model = page.lab.world.model
    drawn = {model.geom(geom).name for geom in page.context.view.grid.drawn_geoms}
    assert drawn == {"ramp", "slab", "ring", "arm"}, "the lowest floor is the ground"
    surface = geom_surface(model, model.geom("ramp").id)
    reach = np.abs(surface.vertices).max(axis=0)
    assert (reach[:2] > 10.0 * model.stat.extent).all() and reach[2] == 0.0
    ring = geom_surface(model, model.geom("ring").id)
    assert len(ring.faces) == model.mesh_facenum[0]
    assert "tendons" in page.parts["OverlayPart"].enabled
    assert ("cylinder",) in page.parts["OverlayPart"].overlays.shapes.handles


def test_rays_of_rangefinders_are_drawn(open_page):
    """Switch rangefinders on: a ray from the site down to the floor has the length it measures."""
    page = open_page(
        """<mujoco><worldbody><geom type="plane" size="5 5 .1"/><body pos="0 0 2">
        <geom size=".1"/><site name="eye" euler="180 0 0"/></body></worldbody>
        <sensor><rangefinder site="eye"/></sensor></mujoco>"""
    )
    part = page.parts["OverlayPart"]
    iterate_once(page)
    assert not part.mujoco._layer.handles
    part.boxes["rangefinders"].value = True
    iterate_once(page)
    (ray,) = part.mujoco._layer.handles.values()
    assert 2.0 * ray.batched_scales[0, 2] == pytest.approx(page.lab.snapshot.sensordata[0])
    assert ray.batched_positions[0] == pytest.approx((0.0, 0.0, 1.0), abs=1e-3)
