"""Bars, plots, overlays and checkpoints of the page."""

import os
import warnings
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.rl.run_folder import RunFolder
from manyworlds.utils.viewer_config import ViewerConfig
from manyworlds.viewer.browser.reward_bar_panel import RewardBarPanel
from manyworlds.viewer.browser.server import new_server, stop_server
from manyworlds.viewer.browser.shapes import surface_colors
from manyworlds.viewer.browser.term_plotter import ViserTermPlotter
from manyworlds.viewer.requests import SelectEnv, SteerCommand, ViewerRequest
from manyworlds.viewer.viser.camera_viewer import ViserCameraViewer
from manyworlds.viewer.viser.checkpoints import checkpoints_of, format_time_ago
from manyworlds.viewer.viser.overlays import SelectedWorldOverlays
from manyworlds.viewer.viser.requests import (
    LoadCheckpoint,
    Redraw,
    ShowDebugShapesOfAll,
    ShowFrames,
    ShowGroup,
    ShowOverlay,
)
from manyworlds.viewer.viser.viewer import ViserPlayViewer
from tests.browser import free_port

pytest.importorskip("viser", reason="needs the extra 'lab'")
pytest.importorskip("viser", reason="needs the extra 'lab'")

pytestmark = pytest.mark.slow_on_warp


@pytest.fixture(scope="module")
def server():
    """A server of pages that nobody looks at."""
    server = new_server("127.0.0.1", free_port())
    yield server
    stop_server(server)


class RewardManager:
    """Two terms that depend on the world and the step."""

    def __init__(self) -> None:
        self.step = 0

    def get_active_iterable_terms(self, env_idx):
        return [("track", [1.0 + env_idx]), ("<cost>", [-0.5])]


class CommandManager:
    """One command that can be steered."""

    def __init__(self) -> None:
        self.active_terms = ["twist"]
        self.steered, self.paused = {}, []
        self.term = SimpleNamespace(
            steering={"x": (-1.0, 2.0)},
            steer=lambda env_idx, values: self.steered.update({env_idx: values}),
            create_gui=None,
        )

    def get_term(self, name):
        return self.term

    def on_viewer_pause(self, paused):
        self.paused.append(paused)


@pytest.fixture
def open_page(make_env, rest, server):
    """Open a page of an environment with rewards and debug shapes."""
    viewers = []

    def make(num_envs=3, **kwargs):
        env = make_env(num_envs)
        env.reward_manager = RewardManager()
        env.drawn = []

        def draw(vis):
            for i in vis.get_env_indices(num_envs):
                env.drawn.append(i)
                vis.add_sphere(np.zeros(3), 0.1, (1.0, 0.0, 0.0, 1.0), label="here")

        env.update_visualizers = draw
        viewer = ViserPlayViewer(env, rest, viser_server=server, **kwargs)
        viewer.now = 0.0
        viewer._clock = lambda: viewer.now
        viewers.append(viewer)
        viewer.setup()
        return viewer

    yield make
    for viewer in viewers:
        viewer.close()


def _act(viewer, action: ViewerRequest) -> None:
    viewer.request(action)
    viewer.now += 0.1
    viewer.tick()


def test_reward_bars(server):
    """Show a bar a term in its direction, as long as its mean over half a second."""
    bars = RewardBarPanel(server, ["a", "<b>"], update_dt=0.25)
    bars.update([("a", np.array([1.0])), ("<b>", np.array([-2.0]))])
    bars.update([("a", np.array([2.0])), ("<b>", np.array([float("nan")]))])
    content = bars._html.content
    assert "+1.500" in content
    assert "-1.000" in content
    assert "&lt;b&gt;" in content
    bars.clear_histories()
    assert "+0.000" in bars._html.content
    bars.cleanup()


def test_reward_bars_have_a_limit(server):
    """Warn about terms that have no bar."""
    with pytest.warns(UserWarning, match="exceed max_terms"):
        bars = RewardBarPanel(server, ["a", "b", "c"], 0.1, max_terms=2)
    assert bars.term_names == ["a", "b"]
    bars.update([("a", np.ones(1)), ("b", np.ones(1)), ("c", np.ones(1))])
    assert ">c<" not in bars._html.content
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RewardBarPanel(server, ["a", "b"], 0.1, max_terms=2).cleanup()
    bars.cleanup()


def test_term_plots(server):
    """Plot the last values of the terms that are shown, and restart with another world."""
    plotter = ViserTermPlotter(server, ["a", "b", "c", "d"], history_length=3)
    assert [plot.visible for plot in plotter._plots.values()] == [True, True, True, False]
    for i in range(5):
        plotter.update([(name, np.array([float(i)])) for name in "abcd"])
    x, y = plotter._plots["a"].data
    np.testing.assert_array_equal(x, [2, 3, 4])
    np.testing.assert_array_equal(y, [2, 3, 4])
    assert len(plotter._plots["d"].data[0]) == 2
    plotter.update_env_idx(0)
    assert len(plotter._histories["a"]) == 3
    plotter.update_env_idx(1)
    assert len(plotter._histories["a"]) == 0
    assert len(plotter._plots["a"].data[0]) == 0, "the other world's curve is still drawn"
    plotter.cleanup()


def test_page_shows_rewards(open_page):
    """Feed bars and plots with the selected world's terms while worlds run."""
    viewer = open_page()
    viewer.select_env(2)
    for _ in range(12):
        viewer.now += 0.05
        viewer.tick()
    assert "+3.000" in viewer._terms.reward_bar_panel._html.content
    viewer.select_env(0)
    assert "+1.000" in viewer._terms.reward_bar_panel._html.content


def test_single_steps_show_rewards(open_page):
    """Take a step while paused: its terms are shown; nothing is taken in without a step."""
    viewer = open_page()
    viewer.pause()
    history = viewer._terms.reward_plotter._histories
    before = [len(values) for values in history.values()]
    viewer.request_single_step()
    viewer.tick()
    assert [len(values) for values in history.values()] == [n + 1 for n in before]
    viewer.tick()
    assert [len(values) for values in history.values()] == [n + 1 for n in before]


def test_debug_shapes(open_page):
    """Draw shapes of few worlds where the page draws these, or of the selected one on request."""
    viewer = open_page()
    viewer.pause()
    _act(viewer, SelectEnv(1))
    layer = viewer._overlays.mujoco._layer.handles[("sphere",)]
    np.testing.assert_allclose(layer.batched_positions, viewer._grid.places, atol=1e-6)
    _act(viewer, ShowDebugShapesOfAll(False))
    np.testing.assert_allclose(layer.batched_positions, viewer._grid.places[1:2], atol=1e-6)
    labels = viewer._overlays.mujoco._labels
    assert [label.text for label in labels if label.visible] == ["here"]
    _act(viewer, ShowDebugShapesOfAll(True))
    np.testing.assert_allclose(layer.batched_positions, viewer._grid.places, atol=1e-6)
    viewer.request_action("toggle_debug_vis")
    _act(viewer, Redraw())
    assert not layer.visible
    assert not any(label.visible for label in viewer._overlays.mujoco._labels)


def test_overlays(open_page):
    """Draw inertia boxes and frames of the selected world on request."""
    viewer = open_page()
    viewer.pause()
    viewer.env.update_visualizers = lambda vis: None
    _act(viewer, ShowOverlay("inertia", True))
    boxes = viewer._overlays.mujoco._layer.handles[("box",)]
    assert boxes.visible
    assert len(boxes.batched_positions) == 2  # cart and pole have mass
    _act(viewer, ShowOverlay("inertia", False))
    assert not boxes.visible
    _act(viewer, ShowFrames(mujoco.mjtFrame.mjFRAME_BODY))
    assert viewer._overlays.mujoco._layer.handles[("cylinder",)].visible


def test_inertia_of_the_world():
    """Draw inertia boxes as large as the world's own inertia, and contacts where they are."""
    xml = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
      <body pos="0 0 .09"><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""
    from manyworlds.sim import Simulation

    sim = Simulation(2, model=mujoco.MjModel.from_xml_string(xml), device="cpu")
    sim.expand_model_fields(("body_inertia",))
    sim.model.body_inertia[1, 1] *= 4.0
    server = new_server("127.0.0.1", free_port())
    try:
        overlays = SelectedWorldOverlays(server, sim.mj_model, sim.model, sim.expanded_fields)
        overlays.mujoco.option.flags[mujoco.mjtVisFlag.mjVIS_INERTIA] = 1
        sizes = []
        for world in (0, 1):
            overlays.show(sim.data, world, np.array([5.0, 0.0, 0.0]))
            (boxes,) = [h for s, h in overlays.mujoco._layer.handles.items() if s == ("box",)]
            sizes.append(boxes.batched_scales.copy())
        np.testing.assert_allclose(sizes[1], 2.0 * sizes[0], rtol=1e-5)
        overlays.mujoco.option.flags[:] = 0
        overlays.on = {"contact_points", "contact_forces"}
        overlays.show(sim.data, 0, np.array([5.0, 0.0, 0.0]))
        assert not boxes.visible
        contact = overlays.shapes.shapes.handles[("cylinder",)]
        place = overlays._frame.position + contact.batched_positions[0]
        np.testing.assert_allclose(place, [5, 0, 0], atol=0.02)
        assert len(overlays.shapes.shapes.handles[("cone",)].batched_positions) == 1
        overlays.on = set()
        overlays.show(sim.data, 0, np.array([5.0, 0.0, 0.0]))
        assert not contact.visible
        overlays.remove()
    finally:
        stop_server(server)


def test_contacts_of_worlds_with_meshes_and_own_fields(server):
    """Draw contacts where a field differs between worlds in the rows of bodies only."""
    from manyworlds.sim import RecomputeLevel, Simulation

    xml = """<mujoco><asset><mesh name="m" builtin="sphere" params="2"/></asset><worldbody>
      <geom type="plane" size="1 1 1"/><body pos="0 0 .9"><freejoint/>
      <geom type="mesh" mesh="m"/><geom size=".1"/></body></worldbody></mujoco>"""
    sim = Simulation(2, model=mujoco.MjModel.from_xml_string(xml), device="cpu")
    sim.expand_model_fields(("geom_size",))
    sim.model.geom_size[1, 2] = 2.0
    sim.recompute_constants(RecomputeLevel.set_const)
    assert "bvh_aabb" in sim.expanded_fields and len(sim.mj_model.bvh_aabb) > 3
    overlays = SelectedWorldOverlays(server, sim.mj_model, sim.model, sim.expanded_fields)
    overlays.on = {"contact_points"}
    overlays.show(sim.data, 1, np.zeros(3))
    discs = overlays.shapes.shapes.handles[("cylinder",)]
    assert len(discs.batched_positions) == overlays._world.data.ncon > 0
    overlays.remove()


def test_groups(open_page):
    """Leave out geoms of a group that is not shown."""
    viewer = open_page()
    before = len(viewer._grid._batches)
    _act(viewer, ShowGroup("geom", 0, False))
    assert len(viewer._grid._batches) < before
    _act(viewer, ShowGroup("geom", 0, True))
    assert len(viewer._grid._batches) == before


def test_randomized_colors_show(open_page):
    """Show a color that changes while the page is open."""
    viewer = open_page()
    viewer.close()
    sim = viewer.env.sim
    sim.expand_model_fields(("geom_rgba",))
    viewer.setup()
    cart = 2
    sim.model.geom_rgba[1, cart] = torch.tensor([1.0, 0.0, 0.0, 1.0])
    viewer.now += 1.0
    _act(viewer, Redraw())
    boxes = viewer._grid._shapes.handles[("box",)]
    (red,) = surface_colors(np.array([[1.0, 0.0, 0.0, 1.0]])).tolist()
    assert boxes.batched_colors.tolist()[1] == red
    assert boxes.batched_colors.tolist()[0] == boxes.batched_colors.tolist()[2] != red
    moved = viewer._grid.places + sim.data.xpos[:, 2].numpy()
    np.testing.assert_allclose(boxes.batched_positions, moved, atol=1e-5)


def test_worlds_have_the_room_that_their_task_needs(server):
    """Keep worlds as far apart as their bodies move, and see all of that."""
    xml = """<mujoco><worldbody><body><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    from manyworlds.viewer.browser.world_grid import WorldGrid

    near = WorldGrid(server, model, ViewerConfig(), 4)
    far = WorldGrid(server, model, ViewerConfig(world_size=2.0), 4)
    assert np.ptp(near.places[:, 0]) == pytest.approx(1.4 * 0.2)
    assert np.ptp(far.places[:, 0]) == np.ptp(far.places[:, 1]) == 2.0
    np.testing.assert_allclose(far.shown_box()[:, :2], [[-2.0, -2.0], [2.0, 2.0]])
    for grid in (near, far):
        grid.remove()


@pytest.mark.parametrize("count", [2, 16, 64])
def test_labels_have_room(server, count):
    """Write the numbers of worlds less wide than worlds are apart, and none of 65 worlds."""
    xml = """<mujoco><worldbody><body><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    from manyworlds.viewer.browser.world_grid import WorldGrid

    grid = WorldGrid(server, model, ViewerConfig(), count)
    assert len(grid._labels) == count
    apart = np.linalg.norm(grid.places[1:] - grid.places[0], axis=1).min()
    for label in grid._labels:
        assert label.font_size_mode == "scene"
        assert 0.5 * len("world 64") * label.font_scene_height < apart
    grid.remove()
    many = WorldGrid(server, model, ViewerConfig(), 65)
    assert not many._labels
    many.remove()


def test_labels_of_worlds_that_meet_are_stacked(server):
    """Draw labels on a terrain one above the other where robots stand at one place."""
    xml = """<mujoco><worldbody><geom type="box" size="20 20 .1"/><body><freejoint/>
    <geom size=".1"/></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    from manyworlds.viewer.browser.world_grid import WorldGrid

    grid = WorldGrid(server, model, ViewerConfig(), 4)
    assert grid.landscape
    positions = np.zeros((4, 2, 3))
    positions[:, 1, :2] = [(9.0, 0.0), (-9.0, 0.0), (9.0, 0.0), (9.0, 0.5)]
    quaternions = np.tile([1.0, 0.0, 0.0, 0.0], (4, 2, 1))
    grid.update(positions, quaternions, np.zeros((4, 3)), 0)
    heights = np.array([label.position[2] for label in grid._labels])
    letters = grid._labels[0].font_scene_height
    np.testing.assert_allclose((heights - heights[0]) / letters, [0.0, 0.0, 2.0, 4.0])
    grid.remove()


def test_many_worlds_have_fewer_faces(make_env, server, monkeypatch):
    """Draw the selected world with all faces and the others with fewer."""
    from manyworlds.viewer.browser import world_grid as scene

    monkeypatch.setattr(scene, "_MAX_FACES", 1500)
    env = make_env(5)
    grid = scene.WorldGrid(server, env.sim.mj_model, env.cfg.viewer, 5)
    positions, quaternions = env.sim.data.xpos.numpy(), env.sim.data.xquat.numpy()
    grid.update(positions, quaternions, np.zeros((5, 3)), 3)
    coarse = next(b for b in grid._batches if b.coarse)
    (detail,) = [b for b in grid._batches if b.detail and b.body_ids == coarse.body_ids]
    assert coarse.faces < detail.faces
    assert coarse.handle.batched_scales.tolist() == [1, 1, 1, 0, 1]
    body = coarse.body_ids[0]
    expected = positions[3:4, body] + grid.places[3]
    np.testing.assert_allclose(detail.handle.batched_positions, expected, atol=1e-6)
    grid.remove()


def test_steering(open_page, make_env, rest, server):
    """Set the command of the selected world by hand, and tell commands of a pause."""
    env = make_env(2)
    env.command_manager = CommandManager()
    from manyworlds.managers import CommandTerm

    env.command_manager.term = type(
        "Term",
        (),
        {
            "steering": {"x": (-1.0, 2.0)},
            "steer": lambda self, i, v: env.command_manager.steered.update({i: v}),
            "create_gui": CommandTerm.create_gui,
        },
    )()
    viewer = ViserPlayViewer(env, rest, viser_server=server)
    viewer.setup()
    viewer.pause()
    assert env.command_manager.paused == [True]
    viewer.select_env(1)
    viewer.request(SteerCommand("twist", [0.5]))
    viewer.tick()
    assert env.command_manager.steered == {1: [0.5]}
    viewer.close()


def test_camera(make_env, server):
    """Show what a camera sees, enlarged, and its frustum where the camera is."""
    xml = """<mujoco><worldbody><camera name="c" pos="1 2 3"/></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    rgb = torch.zeros(2, 4, 6, 3, dtype=torch.uint8)
    rgb[1, 0, 0] = torch.tensor([10, 20, 30])
    depth = torch.linspace(1.0, 5.0, 48).reshape(2, 4, 6, 1)
    cfg = SimpleNamespace(name="c", width=6, height=4, data_types=("rgb", "depth"))
    sensor = SimpleNamespace(cfg=cfg, camera_idx=0, data=SimpleNamespace(rgb=rgb, depth=depth))
    poses = SimpleNamespace(
        cam_xpos=torch.tensor([[[1.0, 2, 3]]] * 2), cam_xmat=torch.eye(3).expand(2, 1, 3, 3)
    )
    viewer = ViserCameraViewer(server, sensor, model, min_display_size=8)
    viewer.update(poses, 1, np.array([10.0, 0.0, 0.0]))
    picture = viewer._images["rgb"].image
    assert picture.shape == (8, 12, 3)
    assert picture[1, 1].tolist() == [10, 20, 30]
    grey = viewer._images["depth"].image[:, :, 0]
    assert grey[0, 0] == 255
    assert grey[-1, -1] == 0
    np.testing.assert_allclose(viewer._frustum.position, [11, 2, 3])
    # MuJoCo's cameras look along -z, viser's along z: half a turn about x.
    np.testing.assert_allclose(np.abs(viewer._frustum.wxyz), [0, 1, 0, 0], atol=1e-6)
    viewer.cleanup()


@pytest.mark.parametrize(
    ("seconds", "text"), [(5, "5s ago"), (61, "1min ago"), (7300, "2h ago"), (200000, "2d ago")]
)
def test_time_ago(seconds, text):
    """Say times in the largest unit that fits."""
    assert format_time_ago(seconds) == text


def test_follows_the_newest_checkpoint(open_page, tmp_path):
    """Load checkpoints as a run writes them, those asked for, and keep playing if one is bad."""
    for i in (1, 2):
        (tmp_path / f"model_{i}.pt").touch()
    os.utime(tmp_path / "model_1.pt", (0, 0))

    def load(path):
        if "7" in path.name:
            raise ValueError("cannot read this")
        return lambda obs: torch.full((len(obs["policy"]), 1), float(path.stem[-1]))

    manager = checkpoints_of(RunFolder(tmp_path), tmp_path / "model_1.pt", load, follow=True)
    assert [name for name, _ in manager.fetch_available()] == ["model_2.pt", "model_1.pt"]
    viewer = open_page(checkpoint_manager=manager)
    assert manager.current_name == "model_2.pt"
    assert viewer.policy({"policy": [0]})[0, 0] == 2.0
    (tmp_path / "model_3.pt").touch()
    viewer.now += 3.0
    viewer.tick()
    assert manager.current_name == "model_3.pt"
    assert viewer._checkpoint_tab._choice.options == ("model_3.pt", "model_2.pt", "model_1.pt")
    manager.follow = False
    _act(viewer, LoadCheckpoint("model_1.pt"))
    assert viewer.policy({"policy": [0]})[0, 0] == 1.0
    (tmp_path / "model_7.pt").touch()
    viewer.request_action("fetch_checkpoint")
    viewer.tick()
    assert manager.current_name == "model_1.pt"
    assert "cannot read this" in viewer.get_status().last_error


@pytest.mark.parametrize(
    ("counter", "paused", "pending", "due"),
    [
        (0, False, False, True),
        (1, False, False, False),
        (1, True, True, True),
        (0, True, False, False),
    ],
)
def test_what_is_due(counter, paused, pending, due):
    """Send poses at every second frame, and while paused only what was asked for."""
    assert ViserPlayViewer._should_submit_scene_update(counter, paused, pending) is due
    assert ViserPlayViewer._should_update_cameras(paused, pending) is (pending or not paused)


def test_quiet(capfd):
    """Print nothing when a page opens and closes."""
    stop_server(new_server("127.0.0.1", free_port()))
    assert capfd.readouterr().out == ""
