"""The camera of a lab's page: what it frames, and which robot it follows."""

from __future__ import annotations

import contextlib
import math
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest

from manyworlds.lab import LiveLab, world_from_scene
from manyworlds.lab.page.camera_controls import find_target
from manyworlds.lab.pictures.film.shots import everything, fit_radius
from manyworlds.lab.robots.control import POLICY
from manyworlds.lab.world.elements import RobotElements
from manyworlds.tasks import load_env_cfg
from manyworlds.viewer.browser.framing import frame_all, frame_body
from tests.browser import free_port, tell_input
from tests.lab.conftest import ARM
from tests.lab.page.test_page import iterate_once

BALLS = """
<mujoco>
  <worldbody>
    <geom type="plane" size="0 0 1"/>
    <body name="a" pos="0 0 {high}"><freejoint/><geom size="{size}"/>
      <body name="b" pos="{size} 0 {size}"><geom size="{size}"/></body></body>
    <geom name="table" type="box" size="{size} {size} {size}" pos="{far} 0 {size}"/>
    <geom name="wall" type="box" size="{wide} {size} {wide}" pos="0 {far} 0"/>
  </worldbody>
</mujoco>
"""


def balls(size: float) -> str:
    """Return a body of two balls above a floor, with a table and a long wall beside it."""
    return BALLS.format(size=size, high=4 * size, far=4 * size, wide=40 * size)


def picture(camera, points) -> np.ndarray:
    """Return places in a picture, from -1 to 1 of its height, and distances [m], shape (n, 3)."""
    forward = camera.look_at - camera.position
    forward = forward / np.linalg.norm(forward)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    offset = np.array(points) - camera.position
    depth = offset @ forward
    scale = math.tan(camera.fov / 2) * depth
    up = np.cross(right, forward)
    return np.column_stack([offset @ right / scale, offset @ up / scale, depth])


@pytest.mark.parametrize("size", [0.005, 0.3, 20.0])
def test_all_sizes_are_framed(open_page, size):
    """See bodies, the table and the floor below, large in the picture and within what is drawn."""
    camera = open_page(balls(size)).server.initial_camera
    corners = [[0, 0, 0], [-size, -size, 3 * size], [2 * size, size, 6 * size], [5 * size, 0, 0]]
    x, y, depth = picture(camera, corners).T
    assert np.abs(y).max() < 1 and np.abs(x).max() < 1.3
    assert np.ptp(picture(camera, [[0, 0, 0], [0, 0, 6 * size]])[:, 1]) > 0.5
    assert camera.near < depth.min() / 10 and camera.far > 10 * depth.max()


@pytest.mark.parametrize(("width", "height"), [(376, 480), (1200, 600), (0, 0)])
def test_narrow_windows_show_all(open_page, monkeypatch, width, height):
    """Frame two bodies far apart in a connected browser, however narrow its view is."""
    apart = """<mujoco><worldbody>
      <body pos="-3.5 -3 0"><freejoint/><geom size=".1"/></body>
      <body pos="3.5 3 0"><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""
    page = open_page(apart)
    camera = SimpleNamespace(image_width=width, image_height=height, fov=math.radians(45.0))
    camera.on_update = lambda call: None
    client = SimpleNamespace(camera=camera, atomic=contextlib.nullcontext)
    monkeypatch.setattr(page.server, "get_clients", lambda: {0: client})
    aspect = width / height if height else 1.3
    for frame in (page.parts["CameraPart"].frame_all, lambda: page._welcome(client, page._shown)):
        camera.position = None
        frame()
        x, y, _ = picture(camera, [[-3.5, -3.0, 0.0], [3.5, 3.0, 0.0]]).T
        assert np.abs(x).max() < aspect and np.abs(y).max() < 1


def test_a_view_that_becomes_narrow_is_fitted_again(page):
    """See the arm beside a panel that comes after the browser; leave a camera that was moved."""
    updates = []
    camera = SimpleNamespace(image_width=800, image_height=480, on_update=updates.append)
    client = SimpleNamespace(camera=camera, atomic=contextlib.nullcontext)
    page._welcome(client, page._shown)
    first, initial = camera.position, page.server.initial_camera.position
    camera.image_width = 200
    updates[0](camera)
    narrow = camera.position
    assert np.linalg.norm(narrow) > 1.5 * np.linalg.norm(first)
    camera.position = initial  # the browser applies this later than what it was told at first
    updates[0](camera)
    assert np.allclose(camera.position, narrow)
    camera.position, camera.image_width = np.ones(3), 800
    updates[0](camera)
    assert np.allclose(camera.position, 1.0)


def test_a_frame_leaves_out_surroundings():
    """Frame a table beside the balls and the floor, not the long wall; or one body."""
    model = mujoco.MjModel.from_xml_string(balls(0.1))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    drawn, none = list(range(model.ngeom)), np.zeros((0, 3))
    box = frame_all(model, data, drawn, none)
    assert box == pytest.approx(np.array([[-0.1, -0.1, 0.0], [0.5, 0.1, 0.6]]), abs=1e-6)
    data.qpos[2] = 50.0
    mujoco.mj_forward(model, data)
    assert frame_all(model, data, drawn, none)[0, 2] == pytest.approx(49.9)
    low, high = frame_body(model, data, model.body("b").id)
    assert (low + high) / 2 == pytest.approx([0.1, 0.0, 50.1]) and (high - low).max() < 0.6
    data.xpos[1:], data.geom_xpos[1:] = np.nan, np.nan
    assert np.isfinite(frame_all(model, data, drawn, none)).all()


def test_a_frame_leaves_out_what_flew_away():
    """Throw a ball far off: frame and film show the rest, but also what was far at first."""
    away = '<body name="far" pos="60 0 .1"><freejoint/><geom size=".1"/></body>'
    xml = balls(0.1).replace("</worldbody>", f"{away}</worldbody>")
    model, none = mujoco.MjModel.from_xml_string(xml), np.zeros((0, 3))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    drawn = [geom for geom in range(model.ngeom) if model.geom_bodyid[geom] != 0]
    assert frame_all(model, data, drawn, none)[1, 0] == pytest.approx(60.1), "it was there"
    data.qpos[-7:-4] = 500.0, -300.0, 90.0
    mujoco.mj_forward(model, data)
    box = frame_all(model, data, drawn, none)
    assert (np.abs(box) < 3.0).all() and (np.abs(everything(model, data)) < 3.0).all()
    assert fit_radius(model, data) < 5.0
    data.qpos[-7:-4] = 2.0, 0.0, 0.1
    mujoco.mj_forward(model, data)
    assert frame_all(model, data, drawn, none)[1, 0] == pytest.approx(2.1), "near enough"


def test_buttons_and_a_key_frame(page):
    """Frame the ball where it is now, then everything again; without a selection, say so."""
    part, ctx = page.parts["CameraPart"], page.context
    before = page.server.initial_camera.look_at.copy()
    page.lab.post(lambda model, data: data.qpos.__setitem__(slice(2, 5), (8.0, 0, 0.3)))
    page.lab.loop.iterate_once()
    ctx.attempt(part.frame_selected)
    assert "No body is selected" in ctx.message
    ctx.body = page.lab.world.model.body("ball").id
    page.keys.actions["F"]()
    assert page.server.initial_camera.look_at == pytest.approx([8.0, 0, 0.3], abs=0.05)
    ctx.body = 0
    page.keys.actions["F"]()
    assert 2.0 < page.server.initial_camera.look_at[0] < 6.0 and before[0] < 1.0


@pytest.mark.parametrize(
    ("task", "floats"), [("Velocity-Flat-Quadruped", True), ("Cartpole-Balance", False)]
)
def test_a_robot_with_a_policy_is_followed(task, floats):
    """Follow the base of a floating robot as soon as a policy controls it; a user may stop it."""
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    from manyworlds.lab.page import PageServer

    cfg = load_env_cfg(task, play=True)
    lab = LiveLab(world_from_scene(cfg.scene, cfg.sim.mujoco))
    page = PageServer(lab, port=free_port())
    try:
        camera = page.parts["CameraPart"]
        overlays: Any = page.parts["OverlayPart"]
        lab.gathered.max_age = float("-inf")
        camera.update(lab.snapshot)
        assert page.context.view.follow == 0
        next(iter(lab.controls)).take(POLICY)
        camera.update(lab.snapshot)
        overlays.update(lab.snapshot)
        model, root = lab.world.model, page.context.view.follow
        assert (root != 0) == floats
        if floats:
            assert model.jnt_type[model.body_jntadr[root]] == mujoco.mjtJoint.mjJNT_FREE
            assert overlays.follow.value == model.body(root).name
        page.context.view.follow = 0
        camera.update(lab.snapshot)
        assert page.context.view.follow == 0
    finally:
        page.close()
        lab.stop()


def test_a_followed_body_that_moved_unseen_is_framed(open_page):
    """Move a followed body before a browser comes: it is in the middle of the first picture."""
    page = open_page(balls(0.3))
    view, lab = page.context.view, page.lab
    view.follow = lab.model.body("a").id
    page.update()
    lab.post(lambda model, data: data.qpos.__setitem__(slice(0, 2), [30.0, 40.0]))
    lab.loop.iterate_once()
    view.look(lab.snapshot, view.follow)
    seen = lab.snapshot.xpos[view.follow] + view._offset_of(lab.snapshot)
    x, y, _ = picture(page.server.initial_camera, [seen])[0]
    assert abs(x) < 0.5 and abs(y) < 0.8
    page.update()
    assert np.allclose(view.offset[:2], seen[:2] - [30.0, 40.0])


def test_a_world_without_actuators_says_what_to_do(open_page, monkeypatch):
    """Say that bodies can be pulled and mocap bodies moved, or that nothing can move."""
    import viser

    said = []
    monkeypatch.setattr(viser.GuiApi, "add_markdown", lambda self, text, **_: said.append(text))
    start, end = ARM.index("<actuator>"), ARM.index("</actuator>") + len("</actuator>")
    open_page(ARM[:start] + ARM[end:])
    open_page("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>")
    pull, still = (text for text in said if "actuators" in text or "joints" in text)
    assert "Ctrl" in pull and "Mocap handles" in pull and "States" not in pull
    assert "no joints" in still and "Ctrl" not in still


def test_a_robot_without_bodies_is_no_target():
    """Look at the robot of a world that has a floor only: one sentence says what to do."""
    floor = "<mujoco><worldbody><geom type='plane' size='1 1 .1'/></worldbody></mujoco>"
    elements = RobotElements(mujoco.MjModel.from_xml_string(floor), {"robot": ""})
    assert find_target(elements, "") == 0
    with pytest.raises(KeyError, match="'robot' has no body to look at: leave the name out"):
        find_target(elements, "robot")


EYED = """
<mujoco>
  <worldbody>
    <body name="head" pos="0 0 1"><freejoint/><geom name="head" size=".1"/>
      <camera name="eye" pos=".2 0 0" xyaxes="0 -1 0 0 0 1" fovy="60"/></body>
  </worldbody>
</mujoco>
"""


def test_the_view_stays_at_a_camera_of_the_model(open_page, monkeypatch):
    """Look through the eye of a head: browsers see from there along +x, also when it has moved."""
    page = open_page(EYED, start_paused=True)
    part = page.parts["CameraPart"]
    camera = SimpleNamespace(position=np.zeros(3), look_at=np.zeros(3), fov=0.0)
    client = SimpleNamespace(client_id=0, camera=camera, atomic=contextlib.nullcontext)
    away = SimpleNamespace(position=np.zeros(3), look_at=np.zeros(3), fov=0.0)
    other = SimpleNamespace(client_id=1, camera=away, atomic=contextlib.nullcontext)
    monkeypatch.setattr(page.server, "get_clients", lambda: {0: client, 1: other})
    assert part.through.visible and part.through.options == ("free view", "eye")
    part.through._impl.value = "eye"
    tell_input(part.through, SimpleNamespace(client=client, client_id=0, target=part.through))
    page.update()
    assert not away.position.any(), "another browser stays where it is"
    np.testing.assert_allclose(camera.position, (0.2, 0.0, 1.0), atol=1e-9)
    ahead = camera.look_at - camera.position
    np.testing.assert_allclose(ahead / np.linalg.norm(ahead), (1.0, 0.0, 0.0), atol=1e-9)
    assert camera.fov == pytest.approx(np.deg2rad(60.0))

    def fly(model: mujoco.MjModel, data: mujoco.MjData) -> None:
        data.qpos[:3] = 1.0, 2.0, 3.0
        mujoco.mj_forward(model, data)

    page.lab.loop.do(fly)
    iterate_once(page)
    np.testing.assert_allclose(camera.position, (1.2, 2.0, 3.0), atol=1e-6)


def test_the_first_picture_shows_all_beside_the_panel(open_page):
    """Place the camera before the size of the view is known: one that is a square shows all."""
    apart = """<mujoco><worldbody>
      <body pos="-3.5 -3 0"><freejoint/><geom size=".1"/></body>
      <body pos="3.5 3 0"><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""
    camera = open_page(apart).server.initial_camera
    x, y, _ = picture(camera, [[-3.5, -3.0, 0.0], [3.5, 3.0, 0.0]]).T
    assert np.abs(x).max() < 1 and np.abs(y).max() < 1
