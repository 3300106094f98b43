"""The page of `play` becomes that of a lab, and returns."""

from __future__ import annotations

import pytest
import torch

from manyworlds.cli.policies import UntrainedPolicy
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.tasks import load_env_cfg
from manyworlds.utils.seeding import rng_state
from manyworlds.viewer import requests
from manyworlds.viewer.browser.keys import KEYS
from manyworlds.viewer.browser.overlays.table import FRAMES, OVERLAYS
from manyworlds.viewer.viser.requests import (
    FollowRobots,
    Leave,
    LookAt,
    ShowDebugShapes,
    ShowDebugShapesOfAll,
    ShowFrames,
    ShowGroup,
    ShowOverlay,
    ToggleOverlays,
    WalkIn,
)
from tests.browser import free_port
from tests.lab.page.conftest import press

pytest.importorskip("viser", reason="needs the extra 'lab'")
pytest.importorskip("viser", reason="needs the extra 'lab'")


@pytest.fixture
def open_play():
    """Open play pages of tasks whose worlds can be entered."""
    from manyworlds.lab.page import walk_in
    from manyworlds.viewer.viser.viewer import ViserPlayViewer

    opened = []

    def make(task="Velocity-Flat-Quadruped", num_envs=3, policy=None, **kwargs) -> ViserPlayViewer:
        cfg = load_env_cfg(task, play=True)
        cfg.scene.num_envs, cfg.seed = num_envs, 2
        env = ManagerBasedRlEnv(cfg, device="cpu")
        kwargs = {"walk_in": walk_in, **kwargs}
        policy = policy or UntrainedPolicy(env, "zero")
        viewer = ViserPlayViewer(env, policy, port=free_port(), **kwargs)
        viewer.setup()
        opened.append(viewer)
        return viewer

    yield make
    for viewer in opened:
        viewer.close()


def carry_out(viewer, *actions) -> None:
    """Carry out requests, as the loop does."""
    for action in actions:
        viewer.request(action)
    viewer._carry_out_requests()


def lab_of(viewer):
    """The lab on the page, and its page."""
    visit = viewer._visit.visit
    return visit.lab, visit.page


def test_walk_in_and_leave(open_play):
    """Walk into world 1 and leave: the lab had its state, and the batch goes on as before."""
    viewer = open_play()
    env, url = viewer.env, viewer.url
    for _ in range(5):
        viewer._execute_step()
    before, draws = env.sim.get_state(), rng_state()["torch"]
    carry_out(viewer, requests.SelectEnv(1), requests.SteerCommand("twist", (0.5, 0.0, 0.0)))
    viewer.pause()
    carry_out(viewer, WalkIn())
    assert viewer.get_status().last_error is None
    lab, page = lab_of(viewer)
    assert lab.environment.env.num_envs == 1 and lab.paused and page.url == url
    assert lab.snapshot.qpos.tobytes() == env.sim.get_state([1])["state"].numpy()[0, 1:20].tobytes()
    lab.step(8)
    assert lab.environment.report.commands["twist"] == (0.5, 0.0, 0.0)  # as the user holds it
    assert viewer.is_running()
    carry_out(viewer, requests.SingleStep())
    assert "leave it first" in viewer.get_status().last_error
    carry_out(viewer, Leave())
    assert lab.loop.state == "stopped" and viewer._visit is None and viewer.url == url
    viewer.tick()
    assert len(viewer.grid.offsets(torch.zeros(3, 3).numpy())) == 3
    for name, rows in env.sim.get_state().items():
        assert torch.equal(rows, before[name]), name
    assert torch.equal(rng_state()["torch"], draws)
    carry_out(viewer, Leave())  # a second click does nothing


def test_the_button_leaves(open_play):
    """Walk in while the worlds run, and click the button: they run again."""
    viewer = open_play("Cartpole-Balance")
    press(viewer._panel._walk_in)
    viewer._carry_out_requests()
    lab, page = lab_of(viewer)
    assert not lab.paused and viewer.get_status().paused
    page.keys.actions["I"]()
    viewer._carry_out_requests()
    assert not viewer.get_status().paused and viewer._visit is None
    viewer.keys = viewer._panel.keys
    viewer.keys.actions["I"]()
    viewer._carry_out_requests()
    assert viewer._visit is not None
    viewer.close()
    assert not viewer.is_running()


def test_a_world_that_cannot_be_entered_stays_in_the_batch(open_play):
    """Walk in with a policy that remembers all worlds: the error is on the page, which stays."""

    class Remembering:
        def __call__(self, obs):
            return torch.zeros(3, 1)

        def reset(self, dones=None):
            return None

    viewer = open_play("Cartpole-Balance", policy=Remembering())
    carry_out(viewer, WalkIn())
    assert "has a memory" in viewer.get_status().last_error
    assert viewer._visit is None and viewer._panel._walk_in.label == "Walk in"
    viewer = open_play("Cartpole-Balance", walk_in=None)
    assert viewer._panel._walk_in is None and "walk_in" not in viewer._panel.keys.names
    carry_out(viewer, WalkIn())
    assert "give it walk_in" in viewer.get_status().last_error


def test_both_pages_have_the_keys_and_overlays_of_the_table(open_play):
    """Compare keys and overlays of both pages with the tables."""
    viewer = open_play()

    def of(page: str) -> set[str]:
        return {name for name, binding in KEYS.items() if page in binding.pages}

    assert viewer._panel.keys.names == of("play")
    assert viewer._visualization.boxes.keys() == OVERLAYS.keys()
    carry_out(viewer, WalkIn())
    _, page = lab_of(viewer)
    assert page.keys.names == of("lab")
    assert page.parts["OverlayPart"].boxes.keys() == OVERLAYS.keys()


def test_keys_switch_what_the_page_shows(open_play):
    """Press keys of the play page: overlays, camera, following, debug shapes, with checkboxes."""
    viewer = open_play()
    viewer.pause()
    for name in OVERLAYS:
        carry_out(viewer, ToggleOverlays((name,)))
        assert viewer._visualization.boxes[name].value and viewer._overlays.shows(name)
        viewer.tick()
        assert viewer.get_status().last_error is None
        carry_out(viewer, ToggleOverlays((name,)))
        assert not viewer._visualization.boxes[name].value
    actions = viewer._panel.keys.actions
    actions["3"]()
    viewer._carry_out_requests()
    viewer.sync_env_to_viewer()
    assert viewer._overlays.shapes.wireframes._handles
    for key, shown in (("D", lambda: viewer._debug.enabled), ("C", lambda: viewer._follow)):
        before = shown()
        actions[key]()
        viewer._carry_out_requests()
        assert shown() != before
    carry_out(viewer, FollowRobots(True), LookAt(None))
    assert viewer._panel._follow.value and viewer._look_at_selected


def test_overlays_stay_on(open_play):
    """Walk in and leave with overlays: they are on in the visited world, and then in the batch."""
    viewer = open_play("Push-Variants")
    on = {"collision", "contact_forces", "com"}
    for name in on:
        carry_out(viewer, ShowOverlay(name, True))
    frame = FRAMES["Bodies"]
    carry_out(viewer, ShowFrames(frame), ShowGroup("geom", 0, False), ShowDebugShapes(False))
    carry_out(viewer, ShowDebugShapesOfAll(True), WalkIn())
    _, page = lab_of(viewer)
    overlays = page.parts["OverlayPart"]
    page.update()
    assert not page.errors and overlays.enabled == on and overlays.frames.value == "Bodies"
    overlays.boxes["joints"].value = True  # a choice of the visited world
    carry_out(viewer, Leave())
    viewer.tick()
    assert viewer.get_status().last_error is None
    boxes = viewer._visualization.boxes
    assert {name for name, box in boxes.items() if box.value} == on
    assert {name for name in OVERLAYS if viewer._overlays.shows(name)} == on
    assert viewer._overlays.shapes.wireframes._handles
    assert viewer._visualization.frames.value == "Bodies"
    assert viewer._overlays.mujoco.option.frame == frame
    assert not viewer.groups["geom"][0] and not viewer._debug.enabled
    assert not viewer._visualization.debug.value and viewer._visualization.debug_all.value
    assert viewer._overlays.mujoco.debug.show_all_envs
