"""The tab of a task whose environment steps the world, without a browser."""

from __future__ import annotations

import html
import queue
import socket

import numpy as np
import pytest

from manyworlds.lab import LiveLab
from manyworlds.lab.readers.link import LabLink
from manyworlds.lab.readers.remote_lab import RemoteLab
from manyworlds.lab.readers.wire import Wire
from manyworlds.viewer import requests
from tests.browser import free_port
from tests.lab.page.conftest import give, press
from tests.lab.task.test_env_stepper import open_task
from tests.waiting import PATIENCE_S


@pytest.fixture
def open_task_page():
    """Open pages of tasks, whose worlds wait for steps."""
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    from manyworlds.lab.page import PageServer

    opened, links = [], []

    def link(lab) -> RemoteLab:
        near, far = socket.socketpair()
        events = queue.Queue()
        links.append((LabLink(Wire(near), print, lambda: None), lab))
        remote = RemoteLab(Wire(far), events.put)
        links[-1][0].show(lab)
        assert events.get(timeout=PATIENCE_S)["event"] == "lab"
        remote.sync_model()
        return remote

    def make(task: str, linked: bool = False, **kwargs) -> PageServer:
        lab = open_task(task, **kwargs)
        page = PageServer(link(lab) if linked else lab, port=free_port())
        for part in page.parts.values():
            part.period = float("-inf")
        lab.gathered.max_age = float("-inf")
        show(page)
        if linked:
            page.lab_and_link = links[-1]
        opened.append(page)
        return page

    yield make
    for page in opened:
        page.close()
    for each, lab in links:
        each.close()
        lab.stop()
    for page in opened:
        if isinstance(page.lab, LiveLab):
            page.lab.stop()


def show(page, num_steps: int = 0) -> None:
    """Take some control steps, and let the page show them."""
    if num_steps:
        task = page.lab.call("read_task")
        page.lab.call("step", n_steps=num_steps * task["decimation"])
    page._due = dict.fromkeys(page.parts, float("-inf"))
    page.update()
    assert not page.errors, page.errors[-1]


def test_commands_rewards_and_ends_are_shown(open_task_page):
    """Steer a quadruped with the sliders of the play page; see rewards and the end of episodes."""
    page = open_task_page("Velocity-Flat-Quadruped", reach=0.1, episode_s=0.2)
    part, stepper = page.parts["TaskPart"], page.lab.environment
    text = html.unescape(page.parts["TopBar"].status.content)
    assert "Policy in the task's environment" in text
    part.request_action("gui_reset")
    part.request(requests.SteerCommand("twist", (0.5, 0.0, 0.25)))
    show(page, 2)
    assert stepper.report.commands["twist"] == (0.5, 0.0, 0.25)
    assert "0.50, 0.00, 0.25" in part.status.content
    assert all(name in part._panels[0][1]._html.content for name in stepper.report.rewards)
    show(page, 10)
    assert "1 ended before" in part.status.content and "time_out" in part.status.content
    give(part.auto_reset, False)
    show(page, 10)
    assert not stepper.auto_reset and stepper.report.episodes == 1
    part.request(requests.NextEnv())
    assert "The lab has no action NextEnv()" in page.context.message


def test_debug_shapes_are_drawn(open_task_page):
    """Draw the goal of a task at the place of the followed view, and hide it."""
    page = open_task_page("Lift-Cube-Arm")
    part = page.parts["TaskPart"]
    show(page, 1)
    drawn = part._overlays.debug.scn.ngeom
    assert drawn > 0
    give(part.shapes, False)
    show(page)
    assert part._overlays.debug.scn.ngeom == 0


def test_a_task_is_shown_through_a_link(open_task_page):
    """Show a task of a lab behind a link: reports, commands and shapes are those of its stepper."""
    page = open_task_page("Velocity-Flat-Quadruped", linked=True)
    (_, lab), part = page.lab_and_link, page.parts["TaskPart"]
    stepper = lab.environment
    part.request(requests.SteerCommand("twist", (0.5, 0.0, 0.25)))
    show(page, 2)
    assert stepper.report.commands["twist"] == (0.5, 0.0, 0.25)
    assert "0.50, 0.00, 0.25" in part.status.content
    assert part._task.report == stepper.report
    drawn, shapes = part._overlays.debug.scn, stepper.debug_shapes()
    assert drawn.ngeom == len(shapes["type"]) > 0
    offset = page.context.view.offset
    for geom, position in zip(drawn.geoms[: drawn.ngeom], shapes["pos"], strict=True):
        np.testing.assert_allclose(geom.pos, position + offset, atol=1e-6)
    give(part.auto_reset, False)
    assert not stepper.auto_reset
    part.request_action("single_step")
    assert not page.context.message and lab.snapshot.paused


@pytest.mark.slow
def test_the_world_moves_to_another_cell(open_task_page):
    """Choose a cell of generated terrain and move there; flat ground has no cells."""
    page = open_task_page("Velocity-Rough-Quadruped", reach=0.1)
    part = page.parts["TerrainCellPart"]
    before = page.lab.snapshot.qpos[:2].copy()
    give(part.level, 2)
    give(part.column, 3)
    press(part.move)
    show(page)
    assert "level 2, column 3" in part.facts.content
    assert page.lab.environment.terrain_cell() == {"level": 2, "column": 3}
    assert np.abs(page.lab.snapshot.qpos[:2] - before).max() > 1.0
    flat = open_task_page("Velocity-Flat-Quadruped", reach=0.1)
    assert "TerrainCellPart" not in flat.parts


def test_motions_can_be_sought(open_task_page):
    """Move a tracked motion to a frame: the robot is there at once, also while paused."""
    page = open_task_page("Tracking-Flat-Humanoid", reach=0.1)
    page.lab.pause()
    page.lab.loop.iterate_once()
    before = page.lab.snapshot.qpos.copy()
    page.parts["TaskPart"].request(requests.SeekMotion("motion", 40))
    assert not page.context.message
    page.lab.loop.iterate_once()
    term = page.lab.environment.env.command_manager.get_term("motion")
    assert term.frame_of(0) == 40 and (page.lab.snapshot.qpos != before).any()
    show(page, 1)


def test_a_plain_world_has_no_task(open_page):
    """Open a model: there is no such tab, and the bar names plain MuJoCo."""
    page = open_page()
    assert "TaskPart" not in page.parts
    assert "plain MuJoCo" in page.parts["TopBar"].status.content
