"""Worlds in MuJoCo's window, on a handle that opens none."""

import contextlib
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.utils.viewer_config import ViewerConfig
from manyworlds.viewer.native import MujocoNativeDebugVisualizer, NativeMujocoViewer
from manyworlds.viewer.native.plots import PlotCfg, TermPlots, compute_viewports
from manyworlds.viewer.neighbors import nearest_worlds
from manyworlds.viewer.requests import ToggleDebugVis, TogglePlots

pytestmark = pytest.mark.slow_on_warp


class Handle:
    """Stand-in for the handle of `mujoco.viewer.launch_passive`, without a window."""

    def __init__(self, model, data, key_callback, **_) -> None:
        self.model, self.data, self.key_callback = model, data, key_callback
        self.cam, self.opt = mujoco.MjvCamera(), mujoco.MjvOption()
        self.perturb = mujoco.MjvPerturb()
        self.user_scn = mujoco.MjvScene(model, 1000)
        self.viewport = mujoco.MjrRect(0, 0, 900, 600)
        self.open, self.figures, self.texts, self.syncs = True, [], None, 0

    lock = contextlib.nullcontext

    def is_running(self) -> bool:
        return self.open

    def set_figures(self, figures) -> None:
        self.figures = figures

    def clear_figures(self) -> None:
        self.figures = []

    def set_texts(self, texts) -> None:
        self.texts = texts

    def sync(self) -> None:
        self.syncs += 1

    def close(self) -> None:
        self.open = False


@pytest.fixture
def window(monkeypatch, make_env, rest):
    """Open viewers in windows that are none."""
    import mujoco.viewer

    monkeypatch.setattr(mujoco.viewer, "launch_passive", Handle)
    monkeypatch.setattr("manyworlds.viewer.native.viewer.check_display", lambda remedy: None)

    def make(num_envs=4, **kwargs):
        env = make_env(num_envs, ViewerConfig(entity_name="cartpole", body_name="cart"))
        origins = torch.tensor([[2.0 * i, 0.0, 0.0] for i in range(num_envs)])
        env.scene = SimpleNamespace(env_origins=origins)
        viewer = NativeMujocoViewer(env, rest, **kwargs)
        viewer.setup()
        return viewer

    return make


def _tick(viewer) -> None:
    viewer._carry_out_requests()
    viewer.sync_viewer_to_env()
    viewer._execute_step()
    viewer.sync_env_to_viewer()


def test_shows_the_selected_world(window):
    """Show the state of the selected world, and another's after the key for it."""
    viewer = window()
    handle = viewer._handle
    for key, world in ((None, 0), (".", 1), (",", 0), (",", 3)):
        if key:
            handle.key_callback(ord(key))
        viewer._carry_out_requests()
        viewer.sync_env_to_viewer()
        assert viewer.env_idx == world
        expected = viewer.env.sim.data.qpos[world].numpy()
        np.testing.assert_allclose(handle.data.qpos, expected, atol=1e-6)
        assert f"{world} of 4" in handle.texts[3]
    assert handle.cam.trackbodyid == viewer.env.sim.mj_model.body("cartpole/cart").id


def test_neighbors(window):
    """Draw the nearest worlds where their origins are, and all of them after the key for it."""
    viewer = window(4)
    moving = 3  # geoms that are not the floor
    scene = viewer._handle.user_scn
    assert sum(g.rgba[3] > 0 for g in scene.geoms[: scene.ngeom]) == 2 * moving
    cart = 2  # the geom after floor and rail
    at = [g.pos[0] for g in scene.geoms[: scene.ngeom] if g.objid == cart]
    expected = viewer.env.sim.data.geom_xpos[1:3, cart, 0].numpy() + np.array([2.0, 4.0])
    np.testing.assert_allclose(at, expected, atol=1e-5)
    viewer._on_key(ord("A"))
    viewer._carry_out_requests()
    viewer.sync_env_to_viewer()
    assert sum(g.rgba[3] > 0 for g in scene.geoms[: scene.ngeom]) == 3 * moving


def test_keys(window):
    """Reset, pause, step and change the speed at keys, in the thread that ticks."""
    pressed = []
    viewer = window(key_callback=pressed.append)
    resets = viewer.env.num_resets
    for key in (257, 32, ord("="), ord("-"), ord("-"), 262, ord("Z")):
        viewer._handle.key_callback(key)
    assert not viewer.get_status().paused
    viewer._carry_out_requests()
    assert viewer.env.num_resets == resets + 1
    status = viewer.get_status()
    assert (status.paused, status.step_count, status.speed_multiplier) == (True, 1, 0.5)
    assert pressed[-1] == ord("Z")


def test_actions_that_fail_are_shown(window):
    """Ask for what the window does not have: its text says so, and the worlds pause."""
    viewer = window()
    viewer.request_action("fetch_checkpoint")
    viewer._carry_out_requests()
    assert viewer.get_status().paused
    names, values = viewer._texts()[2:]
    assert "Error" in names and "no action FetchCheckpoint()" in values


def test_push(window, monkeypatch):
    """Push a body of the selected world only, and take the force away afterwards."""
    viewer = window()
    perturb = viewer._handle.perturb

    def push(model, data, pert):
        data.xfrc_applied[3, 0] = 5.0

    monkeypatch.setattr(mujoco, "mjv_applyPerturbForce", push)
    viewer.select_env(2)
    perturb.active = 1
    viewer.sync_viewer_to_env()
    forces = viewer.env.sim.data.xfrc_applied
    assert forces[2, 3, 0] == 5.0
    assert forces.abs().sum() == 5.0
    perturb.active = 0
    viewer.sync_viewer_to_env()
    assert forces.abs().sum() == 0.0
    perturb.active = 1
    viewer.sync_viewer_to_env()
    viewer.select_env(0)
    assert forces.abs().sum() == 0.0


def test_nothing_is_written_without_a_push(window):
    """Leave forces alone that an event put on a body."""
    viewer = window()
    viewer.env.sim.data.xfrc_applied[0, 2, 1] = 3.0
    viewer.sync_viewer_to_env()
    assert viewer.env.sim.data.xfrc_applied[0, 2, 1] == 3.0


def test_debug_shapes_and_plots(window):
    """Draw what terms draw, and plots of rewards; hide both at keys."""
    viewer = window()
    unwrapped = viewer.env.unwrapped
    unwrapped.update_visualizers = lambda vis: vis.add_sphere(np.zeros(3), 0.1, (1, 0, 0, 1))
    unwrapped.reward_manager = SimpleNamespace(
        get_active_iterable_terms=lambda i: [("a", [1.0 + i]), ("b", [-1.0])]
    )
    viewer = NativeMujocoViewer(viewer.env, viewer.policy)
    viewer.setup()
    _tick(viewer)
    scene = viewer._handle.user_scn
    assert any(g.category == mujoco.mjtCatBit.mjCAT_DECOR for g in scene.geoms[: scene.ngeom])
    assert [figure.title for _, figure in viewer._handle.figures] == ["a", "b"]
    assert viewer._handle.figures[0][1].linedata[0, 1] == 1.0
    viewer.carry_out(TogglePlots())
    viewer.carry_out(ToggleDebugVis())
    _tick(viewer)
    assert viewer._handle.figures == []
    assert not any(g.category == mujoco.mjtCatBit.mjCAT_DECOR for g in scene.geoms[: scene.ngeom])
    viewer.select_env(1)
    assert viewer._plots.figures[0].linepnt[0] == 0


def test_no_display(make_env, rest, monkeypatch):
    """Say what else there is where no window can be opened."""
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    with pytest.raises(RuntimeError, match="--viewer viser"):
        NativeMujocoViewer(make_env(1), rest).setup()


def test_display_that_cannot_be_used(make_env, rest, monkeypatch):
    """Open no window on a display that does not answer, where MuJoCo's viewer would hang."""
    import mujoco.viewer

    monkeypatch.setattr(mujoco.viewer, "launch_passive", Handle)
    monkeypatch.setenv("DISPLAY", ":77")
    with pytest.raises(RuntimeError, match="cannot use the display ':77'.*--viewer viser"):
        NativeMujocoViewer(make_env(1), rest).setup()


def test_closes_once(window):
    """End when the window is closed, and close it only once."""
    viewer = window()
    assert viewer.is_running()
    viewer._handle.open = False
    assert not viewer.is_running()
    viewer.close()
    viewer.close()


@pytest.mark.parametrize("count", [0, 1, 5, 9, 30])
def test_viewports(count):
    """Keep plots within a strip at the right, without overlap."""
    rect, cfg = mujoco.MjrRect(10, 20, 900, 600), PlotCfg()
    places = compute_viewports(count, rect, cfg)
    assert len(places) == min(count, cfg.max_viewports)
    taken = np.zeros((700, 1000), int)
    for p in places:
        assert p.left >= 10 + 600
        assert p.left + p.width <= 910
        assert p.bottom >= 20
        assert p.bottom + p.height <= 620
        taken[p.bottom : p.bottom + p.height, p.left : p.left + p.width] += 1
    assert taken.max() <= 1


def test_plots_follow_values():
    """Plot the last values, the newest at the right, within the range of most of them."""
    plots = TermPlots(["a"], PlotCfg(history=3))
    for value in (1.0, 2.0, float("nan"), 4.0):
        plots.update([value])
    (figure,) = plots.figures
    assert figure.linepnt[0] == 3
    np.testing.assert_allclose(figure.linedata[0, :6], [-2, 2, -1, 0, 0, 4])
    assert figure.range[1][0] < 0.0 < 4.0 < figure.range[1][1]


def test_nearest_worlds():
    """List worlds by distance, without the one in the middle and those at its place."""
    origins = torch.tensor([[0.0, 0, 0], [3, 0, 0], [1, 0, 0], [0, 0, 0], [0, 2, 0]])
    worlds, ways = zip(*nearest_worlds(origins, 0, 2), strict=True)
    assert worlds == (2, 4)
    np.testing.assert_array_equal(ways, [[1, 0, 0], [0, 2, 0]])


def test_visualizer_draws_geoms():
    """Turn each call into geoms at the place named, as long as there is room."""
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    scene = mujoco.MjvScene(model, 7)
    vis = MujocoNativeDebugVisualizer(scene, model, env_idx=1)
    color, eye = (1.0, 0.0, 0.0, 0.5), np.eye(3)
    vis.offset = np.array([10.0, 0.0, 0.0])
    vis.add_arrow(np.zeros(3), np.array([0.0, 0.0, 2.0]), color, label="up")
    vis.add_sphere(torch.tensor([1.0, 0.0, 0.0]), 0.3, color)
    vis.add_box(np.zeros(3), np.ones(3), eye, color)
    vis.add_frame(np.zeros(3), eye)
    assert list(vis.get_env_indices(4)) == [1]
    assert scene.ngeom == 6
    arrow, ball = scene.geoms[0], scene.geoms[1]
    assert (arrow.type, arrow.label) == (mujoco.mjtGeom.mjGEOM_ARROW, "up")
    np.testing.assert_allclose(ball.pos, [11, 0, 0])
    np.testing.assert_allclose(ball.size, 0.3)
    np.testing.assert_allclose(ball.rgba, color)
    vis.add_ellipsoid(np.zeros(3), np.ones(3), eye, color)
    vis.add_sphere(np.zeros(3), 1.0, color)  # there is no room left
    vis.add_arrow(np.zeros(3), np.zeros(3), color)  # there is nothing to draw
    assert scene.ngeom == 7
    vis.clear()
    assert scene.ngeom == 0


def test_ghost():
    """Draw the moving geoms of another state, half transparent."""
    xml = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
      <body><joint type="slide"/><geom size=".1"/></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    scene = mujoco.MjvScene(model, 10)
    vis = MujocoNativeDebugVisualizer(scene, model, env_idx=0)
    vis.add_ghost_mesh(torch.tensor([0.7]), model, alpha=0.25, label="target")
    assert scene.ngeom == 1
    np.testing.assert_allclose(scene.geoms[0].pos, [0, 0, 0.7], atol=1e-6)
    assert scene.geoms[0].rgba[3] == pytest.approx(0.25)
    assert scene.geoms[0].label == "target"
