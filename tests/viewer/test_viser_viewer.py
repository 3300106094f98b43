"""Worlds in a browser."""

import contextlib
import html
import importlib
import io
import threading
import urllib.request
from dataclasses import dataclass
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.utils.viewer_config import ViewerConfig
from manyworlds.viewer.browser import cameras, layout
from manyworlds.viewer.requests import Custom, FetchCheckpoint, SelectEnv, ViewerRequest
from manyworlds.viewer.viser.requests import FollowRobots, LoadCheckpoint, LookAt, ShowOverlay
from manyworlds.viewer.viser.viewer import ViserPlayViewer
from tests.browser import free_port
from tests.waiting import PATIENCE_S

viser = pytest.importorskip("viser", reason="needs the extra 'lab'")
pytest.importorskip("viser", reason="needs the extra 'lab'")


@pytest.fixture
def open_viewer(make_env, rest):
    """Open viewers on free ports; close them after the test."""
    viewers = []

    def make(num_envs=4, viewer_cfg=None, **kwargs):
        env = make_env(num_envs, viewer_cfg)
        kwargs = {"frame_rate": 30.0, "port": free_port(), **kwargs}
        viewer = ViserPlayViewer(env, rest, **kwargs)
        viewer.now = 0.0
        viewer._clock = lambda: viewer.now
        viewers.append(viewer)
        viewer.setup()
        viewer.tick()
        return viewer

    yield make
    for viewer in viewers:
        viewer.close()


def _body(viewer, name: str):
    """The handle that draws a body of the model."""
    body_id = viewer.env.sim.mj_model.body(name).id
    (batch,) = [batch for batch in viewer._grid._batches if body_id in batch.body_ids]
    return batch.handle


def _draw(viewer) -> None:
    viewer.request_redraw()
    viewer._carry_out_requests()
    viewer.sync_env_to_viewer()


def _pass_time(viewer, seconds: float, ticks: int = 10) -> None:
    for _ in range(ticks):
        viewer.now += seconds / ticks
        viewer.tick()


def test_serves_a_page(open_viewer):
    """Serve a page on this machine only, at the address that the viewer tells."""
    viewer = open_viewer()
    assert viewer.url.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(viewer.url, timeout=PATIENCE_S) as page:
        assert b"<html" in page.read(2000).lower()
    assert viewer.is_running()
    viewer.close()
    viewer.close()
    assert not viewer.is_running()


def test_opens_again(open_viewer):
    """Serve a complete page again after it was closed."""
    viewer = open_viewer(2)
    viewer.close()
    with pytest.raises(RuntimeError, match="call setup"):
        _ = viewer.url
    viewer.setup()
    assert viewer._grid._labels[1].text == "world 1"
    with urllib.request.urlopen(viewer.url, timeout=PATIENCE_S) as page:
        assert page.status == 200


def test_taken_port(open_viewer):
    """Take the next free port where the one asked for is taken, and tell it."""
    first = open_viewer()
    second = open_viewer(port=int(first.url.rpartition(":")[2]))
    assert second.url != first.url
    for viewer in (first, second):
        with urllib.request.urlopen(viewer.url, timeout=PATIENCE_S) as page:
            assert page.status == 200


def test_bodies_move(open_viewer):
    """Send the poses of the simulation, each world moved to its place of the grid."""
    viewer = open_viewer(4)
    before = _body(viewer, "cartpole/pole").batched_wxyzs.copy()
    _pass_time(viewer, 0.4)
    assert viewer.get_status().step_count >= 19
    handle, body = _body(viewer, "cartpole/pole"), viewer.env.sim.mj_model.body("cartpole/pole").id
    assert np.abs(handle.batched_wxyzs - before).max() > 0.05
    # Steps after the last frame are not drawn yet.
    _draw(viewer)
    places = viewer._grid.places
    expected = viewer.env.sim.data.xpos[:, body].numpy() + places
    np.testing.assert_allclose(handle.batched_positions, expected, atol=1e-6)
    np.testing.assert_allclose(
        handle.batched_wxyzs, viewer.env.sim.data.xquat[:, body].numpy(), atol=1e-6
    )
    static = _body(viewer, "cartpole/base").batched_positions
    np.testing.assert_allclose(static, places + np.array([0, 0, 1]), atol=1e-6)


def test_places_do_not_overlap(open_viewer):
    """Give each world a place of its own, apart by more than its size."""
    viewer = open_viewer(9)
    places, size = viewer._grid.places, np.ptp(viewer._grid.box, axis=0)
    assert places.shape == (9, 3)
    for i, j in zip(*np.triu_indices(9, k=1), strict=True):
        assert (np.abs(places[i] - places[j])[:2] > size[:2]).any()


def test_frames_are_limited(open_viewer):
    """Send poses at every second frame, however fast the loop ticks."""
    viewer = open_viewer(frame_rate=20.0)
    sent = []
    viewer._grid.update = lambda *args: sent.append(args)
    _pass_time(viewer, 1.0, ticks=200)
    assert len(sent) == pytest.approx(10, abs=1)


def test_nothing_is_sent_twice(open_viewer, monkeypatch):
    """Send no poses that are as they were, even when a picture is asked for."""
    viewer = open_viewer()
    viewer.pause()
    viewer.sync_env_to_viewer()
    messages = []
    server = viewer.server._websock_server
    # Other messages come from viser's threads whenever they like.
    monkeypatch.setattr(
        server, "queue_message", lambda message: messages.append(_names_poses(message))
    )
    viewer.request_redraw()
    _pass_time(viewer, 0.2)
    assert not any(messages)
    viewer.env.sim.data.qpos[0, 0] += 0.1
    viewer.env.sim.forward()
    viewer.request_redraw()
    _pass_time(viewer, 0.2)
    assert any(messages), "the test does not see what is sent"


def _names_poses(message) -> bool:
    return "batched_positions" in getattr(message, "updates", {})


@pytest.mark.parametrize(
    ("selected", "shown"), [(0, range(0, 4)), (3, range(0, 4)), (4, range(4, 8)), (9, range(6, 10))]
)
def test_worlds_that_are_shown(open_viewer, selected, shown):
    """Show as many worlds as asked for, the selected one among them."""
    viewer = open_viewer(10, num_shown=4)
    viewer.request(SelectEnv(selected))
    _pass_time(viewer, 0.1)
    assert viewer.shown_worlds == shown
    assert viewer._panel._world.handle.value == selected
    assert [label.text for label in viewer._grid._labels] == [f"world {i}" for i in shown]
    viewer.request_redraw()
    _pass_time(viewer, 0.1)
    place = viewer._grid.places[selected - shown.start]
    np.testing.assert_allclose(viewer._grid._outline.position, place)
    cart = viewer.env.sim.mj_model.body("cartpole/cart").id
    _draw(viewer)
    expected = viewer.env.sim.data.xpos[list(shown), cart].numpy() + viewer._grid.places
    np.testing.assert_allclose(
        _body(viewer, "cartpole/cart").batched_positions, expected, atol=1e-6
    )


def test_look_at_selected(open_viewer):
    """Move the camera to the selected world and back to all."""
    viewer = open_viewer(4)
    everything = viewer.server.initial_camera.position.copy()
    viewer.request(LookAt(True))
    viewer.request_action("next_env")
    _pass_time(viewer, 0.1)
    camera = viewer.server.initial_camera
    box = viewer._grid.shown_box(1)
    np.testing.assert_allclose(camera.look_at, box.mean(axis=0))
    viewer.request(LookAt(False))
    _pass_time(viewer, 0.1)
    np.testing.assert_allclose(camera.position, everything)


def test_a_narrow_browser_sees_all_worlds(open_viewer):
    """Fit the view to a browser that becomes narrow; leave it alone after the end."""
    viewer = open_viewer(4)
    updates = []
    camera = SimpleNamespace(image_width=900, image_height=480, on_update=updates.append)
    client = SimpleNamespace(camera=camera, atomic=contextlib.nullcontext)
    viewer._view._welcome(client)
    center = viewer._grid.shown_box().mean(axis=0)
    first = np.linalg.norm(viewer.server.initial_camera.position - center)
    assert 0.8 * first < np.linalg.norm(camera.position - center) <= first, "it is wider"
    wide, camera.image_width = camera.position, 240  # the panel is drawn
    updates[0](camera)
    farther = np.linalg.norm(camera.position - center) / np.linalg.norm(wide - center)
    assert 1.5 < farther < 3.0  # at 900 pixels, the assumed aspect ratio is 1.2
    viewer.close()
    narrow, camera.image_width = camera.position, 100
    updates[0](camera)
    np.testing.assert_allclose(camera.position, narrow)


def test_panel_shows_pause_and_errors(open_viewer):
    """Show on the page that the worlds are paused, and why, as text and not as HTML."""
    viewer = open_viewer()
    assert viewer._panel._pause.label == "Pause"

    def fail(obs):
        raise ValueError("<b>bad</b> action")

    viewer.policy = fail
    _pass_time(viewer, 0.5)
    assert viewer._panel._pause.label == "Play"
    assert "ValueError: &lt;b&gt;bad&lt;/b&gt; action" in viewer._panel._status.content


@dataclass(frozen=True)
class Fly(ViewerRequest):
    """An action that no viewer has."""

    height: float


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (Fly(2.0), "ViserPlayViewer has no action Fly(height=2.0)"),
        (Custom(("flag", 3)), "ViserPlayViewer has no action Custom(payload=("),
        (ShowOverlay("ghosts", True), "There is no overlay &#x27;ghosts&#x27;: use one of"),
        (LoadCheckpoint("model_1.pt"), "give a checkpoint_manager"),
        (FetchCheckpoint(), "There is no checkpoint to load"),
    ],
)
def test_actions_that_fail_are_shown(open_viewer, capsys, action, message):
    """Ask for what cannot be done: the worlds pause, the page and the terminal say why."""
    viewer = open_viewer()
    viewer.request(action)
    _pass_time(viewer, 0.1)
    assert viewer.get_status().paused
    assert message in viewer._panel._status.content
    assert html.unescape(message) in capsys.readouterr().out
    viewer.request_redraw()
    _pass_time(viewer, 0.3)
    assert message in viewer._panel._status.content, "another action hides the error"
    viewer.request_toggle_pause()
    _pass_time(viewer, 0.3)
    assert message not in viewer._panel._status.content


def test_another_bucket_ends_the_page(open_viewer):
    """Name the bucket that is chosen on the page, and stop serving this one."""
    viewer = open_viewer(buckets=("two", "three"), bucket="two")
    [choice] = [
        handle
        for handle in viewer.server.gui._gui_input_handle_from_uuid.values()
        if isinstance(handle, viser.GuiDropdownHandle) and handle.label == "Bucket"
    ]
    assert choice.options == ("two", "three") and choice.value == "two"
    assert viewer.is_running() and viewer.chosen_bucket is None
    viewer._choose_bucket("three")
    assert not viewer.is_running() and viewer.chosen_bucket == "three"


def test_diverged_world(open_viewer):
    """Keep drawing finite poses when a world is not finite, and say so."""
    viewer = open_viewer()
    viewer.pause()
    viewer.env.sim.data.qpos[0] = float("nan")
    viewer.env.sim.forward()
    _pass_time(viewer, 0.3)
    for batch in viewer._grid._batches:
        assert np.isfinite(batch.handle.batched_positions).all()
        assert np.isfinite(batch.handle.batched_wxyzs).all()
    assert "not finite" in viewer._panel._status.content


def test_follow(open_viewer):
    """Keep the followed body of every world at its place."""
    viewer = open_viewer(4, ViewerConfig(entity_name="cartpole", body_name="cart"))
    _pass_time(viewer, 0.2)
    positions = _body(viewer, "cartpole/cart").batched_positions
    np.testing.assert_allclose(positions[:, :2], viewer._grid.places[:, :2], atol=1e-6)
    viewer.request(FollowRobots(False))
    _pass_time(viewer, 0.1)
    positions = _body(viewer, "cartpole/cart").batched_positions
    assert np.abs(positions[:, 0] - viewer._grid.places[:, 0]).max() > 0.5


def test_env_origins(open_viewer):
    """Draw worlds at their places wherever the scene puts them."""
    viewer = open_viewer(4)
    _draw(viewer)
    before = _body(viewer, "cartpole/cart").batched_positions.copy()
    origins = torch.tensor([[10.0 * i, 5.0, 0.0] for i in range(4)])
    viewer.env.scene = SimpleNamespace(env_origins=origins)
    # These worlds are all at zero, wherever their origins are.
    _draw(viewer)
    cart = _body(viewer, "cartpole/cart")
    np.testing.assert_allclose(cart.batched_positions, before, atol=1e-5)
    viewer.pause()
    viewer.env.sim.data.xpos += origins[:, None]
    _draw(viewer)
    np.testing.assert_allclose(cart.batched_positions, before, atol=1e-5)


def test_given_server(make_env, rest):
    """Draw in a server that was given, and leave it running without our drawings."""
    server = viser.ViserServer("127.0.0.1", free_port(), verbose=False)
    try:
        viewer = ViserPlayViewer(make_env(2), rest, viser_server=server)
        viewer.setup()
        batches = viewer._grid._batches
        assert viewer.url.endswith(str(server.get_port()))
        viewer.close()
        assert all(batch.handle._impl.removed for batch in batches)
        with urllib.request.urlopen(
            f"http://127.0.0.1:{server.get_port()}", timeout=PATIENCE_S
        ) as page:
            assert page.status == 200
    finally:
        server.stop()


def test_missing_extra(make_env, rest, monkeypatch):
    """Name the install command where the browser packages are missing."""
    real = importlib.import_module

    def missing(name, *args):
        if name == "viser":
            raise ModuleNotFoundError("No module named 'viser'", name="viser")
        return real(name, *args)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(ImportError, match=r"pip install 'manyworlds-rl\[lab\]'"):
        ViserPlayViewer(make_env(1), rest)


def test_num_shown_is_checked(make_env, rest):
    """Refuse to show no worlds; show all where there are fewer than asked for."""
    with pytest.raises(ValueError, match="num_shown must be at least 1, got 0"):
        ViserPlayViewer(make_env(2), rest, num_shown=0)
    assert ViserPlayViewer(make_env(2), rest).num_shown == 2


TERRAIN = """
<mujoco>
  <asset><hfield name="hills" nrow="4" ncol="4" size="10 10 1 1"/></asset>
  <worldbody>
    <geom type="hfield" hfield="hills"/>
    <body name="ball" pos="1 2 3"><freejoint/><geom size=".1"/></body>
  </worldbody>
</mujoco>
"""


@pytest.mark.slow_on_warp
def test_terrain_is_shared(open_viewer, make_env, monkeypatch):
    """Draw a terrain once, and worlds on it where they are in the simulation."""
    model = mujoco.MjModel.from_xml_string(TERRAIN)
    monkeypatch.setattr(mujoco.MjModel, "from_xml_string", lambda xml: model)
    monkeypatch.setattr(make_env, "reset", lambda self: self.sim.forward())
    viewer = open_viewer(3)
    viewer.env.sim.data.qpos[:, 0] = torch.tensor([0.0, 3.0, 6.0])
    viewer.env.sim.forward()
    _draw(viewer)
    terrain, ball = viewer._grid._batches
    assert len(terrain.handle.batched_positions) == 1
    np.testing.assert_allclose(
        ball.handle.batched_positions, [[0, 2, 3], [3, 2, 3], [6, 2, 3]], atol=1e-5
    )
    # Follow the selected world: everything moves by the same way, terrain too.
    viewer.request(FollowRobots(True))
    viewer.request(SelectEnv(1))
    viewer.pause()
    _pass_time(viewer, 0.1)
    np.testing.assert_allclose(
        ball.handle.batched_positions, [[-3, 0, 3], [0, 0, 3], [3, 0, 3]], atol=1e-5
    )
    np.testing.assert_allclose(terrain.handle.batched_positions, [[-3, -2, 0]], atol=1e-5)


@pytest.mark.parametrize("azimuth", [0.0, 90.0, 130.0, -90.0])
@pytest.mark.parametrize("elevation", [-80.0, -45.0, 10.0])
def test_camera_sees_the_whole_box(azimuth, elevation):
    """Put the camera where every corner is in the picture, and one is near its edge."""
    box = np.array([[-4.0, -1.0, 0.0], [5.0, 2.0, 1.5]])
    position, look_at = cameras.camera_to_see(box, azimuth, elevation, 45.0, 1.2)
    forward = (look_at - position) / np.linalg.norm(look_at - position)
    right = np.cross(forward, [0, 0, 1])
    right /= np.linalg.norm(right)
    corners = np.array([[box[i, 0], box[j, 1], box[k, 2]] for i, j, k in np.ndindex(2, 2, 2)])
    offset = corners - position
    tangent = np.tan(np.radians(22.5)) * (offset @ forward)
    reach = np.maximum(
        np.abs(offset @ np.cross(right, forward)) / tangent,
        np.abs(offset @ right) / (1.2 * tangent),
    )
    assert (tangent > 0).all()
    assert reach.max() == pytest.approx(1.0)


def test_first_world_is_far_left():
    """Order places row by row from the far left, as seen by the camera."""
    places = layout.grid_slots(4, np.array([1.0, 1.0, 1.0]), azimuth=90.0)
    np.testing.assert_allclose(places.sum(axis=0), 0, atol=1e-12)
    assert places[0, 0] < places[1, 0]
    assert places[0, 1] > places[2, 1]
    turned = layout.grid_slots(4, np.array([1.0, 1.0, 1.0]), azimuth=0.0)
    assert turned[0, 1] > turned[1, 1]
    assert turned[0, 0] > turned[2, 0]


def test_box_is_where_worlds_begin():
    """Find bodies where the first keyframe has them, which is where a scene's robots begin."""
    xml = """<mujoco><worldbody><body><freejoint/><geom size=".1"/></body></worldbody>
      <keyframe><key qpos="0 0 2 1 0 0 0"/></keyframe></mujoco>"""
    box = layout.bounding_box(mujoco.MjModel.from_xml_string(xml), [0])
    np.testing.assert_allclose(box, [[-0.1, -0.1, 1.9], [0.1, 0.1, 2.1]])


class _TiltReward:
    """One term: how far the pole leans [rad]."""

    def __init__(self, env):
        self.env, self.active_terms = env, ["tilt"]

    def get_active_iterable_terms(self, env_idx):
        return [("tilt", [float(self.env.sim.data.qpos[env_idx, 1])])]


def _lowest_cart(browser) -> tuple[int, int]:
    """Wait for blue carts in the picture, and say where the lowest one is on the page."""
    image_module = pytest.importorskip("PIL.Image")
    corner = browser.locator("canvas").first.bounding_box()
    left, top = int(corner["x"]), int(corner["y"])
    right, bottom = left + int(corner["width"]), top + int(corner["height"])
    for _ in range(40):
        # A picture of the canvas alone would wait until two frames were drawn in time.
        shot = image_module.open(io.BytesIO(browser.screenshot())).convert("RGB")
        pixels = np.asarray(shot).astype(int)[top:bottom, left:right]
        blue = pixels[..., 2] > pixels[..., 0] + 60
        if blue.mean() > 0.002:
            break
        browser.wait_for_timeout(500)
    assert pixels.std() > 5, "the picture is blank"
    assert blue.mean() > 0.002, "there are no blue carts in the picture"
    rows, columns = np.nonzero(blue)
    return left + int(columns[rows.argmax()]), top + int(rows.max()) - 2


@pytest.mark.parametrize("engine", ["native"], indirect=True)  # the page is the same
def test_browser(make_env, rest, browser):
    """Show worlds, reward bars and status in a real browser; act on its buttons and keys."""
    env = make_env(12)
    env.reward_manager = _TiltReward(env)
    viewer = ViserPlayViewer(env, rest, frame_rate=5.0, port=free_port(), num_shown=9)
    thread = threading.Thread(target=viewer.run, daemon=True)
    viewer.setup()
    # While worlds move, a browser that draws without a graphics card answers late.
    viewer.pause()
    thread.start()

    def world_is(condition: str) -> None:
        browser.wait_for_function(
            f"document.querySelector('input[inputmode=decimal]').value {condition}"
        )

    def tilt() -> str:
        return browser.get_by_text("tilt", exact=True).first.locator("xpath=../div[3]").inner_text()

    try:
        browser.goto(viewer.url)
        browser.get_by_text("0 to 8 of 12").wait_for()
        browser.get_by_role("button", name="Play").wait_for()
        lowest = None
        while lowest != (lowest := _lowest_cart(browser)):  # the view is fitted beside the panel
            browser.wait_for_timeout(1000)
        for key, selected in ((".", 1), (".", 2), (",", 1)):
            browser.keyboard.press(key)
            world_is(f"=== '{selected}'")
            assert viewer.env_idx == selected
        # Select the world that is lowest in the picture, which is of the last row.
        browser.mouse.click(*lowest)
        world_is("> 5")
        assert viewer.env_idx in (6, 7, 8)
        browser.keyboard.press("=")
        browser.get_by_text("2x", exact=True).wait_for()
        browser.get_by_role("tab", name="Rewards").click()
        before = tilt()
        assert float(before) != 0.0
        for _ in range(10):
            browser.keyboard.press("n")
        browser.wait_for_function(f"!document.body.innerText.includes('{before}')")
        assert float(tilt()) != float(before)
        browser.evaluate("document.activeElement.blur()")  # a tab with the focus takes the key
        browser.keyboard.press("Space")
        browser.get_by_text("real time").wait_for()
        assert not viewer.get_status().paused
    finally:
        viewer.close()
        thread.join(PATIENCE_S)
    assert not thread.is_alive()
