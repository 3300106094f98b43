"""The page of a lab in a real browser."""

from __future__ import annotations

import numpy as np
import pytest

from manyworlds.lab import LabCfg, LiveLab, world_from_scene
from tests.browser import free_port


@pytest.fixture
def quadruped():
    """A lab of the quadruped that is paused, and its page."""
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    pytest.importorskip("mjviser", reason="needs the extra 'lab'")
    from manyworlds.lab.page import LabPage
    from manyworlds.tasks import load_env_cfg

    cfg = load_env_cfg("Velocity-Flat-Quadruped", play=True)
    lab = LiveLab(world_from_scene(cfg.scene, cfg.sim.mujoco), LabCfg(start_paused=True))
    served = LabPage(lab, port=free_port(), frame_rate=5.0)
    with lab:
        served.start()
        yield lab, served
        served.close()


def on_screen(camera, canvas: dict[str, float], point: np.ndarray) -> tuple[float, float]:
    """Where on the browser's page a point of the world is drawn [pixel]."""
    forward = camera.look_at - camera.position
    forward = forward / np.linalg.norm(forward)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right = right / np.linalg.norm(right)
    offset = point - camera.position
    scale = canvas["height"] / 2 / np.tan(camera.fov / 2) / (offset @ forward)
    return (
        canvas["x"] + canvas["width"] / 2 + scale * (offset @ right),
        canvas["y"] + canvas["height"] / 2 - scale * (offset @ np.cross(right, forward)),
    )


def test_a_slider_moves_a_joint(quadruped, browser):
    """Load the page, press play, drag a slider: the joint of the robot moves there."""
    lab, served = quadruped
    browser.set_viewport_size({"width": 900, "height": 640})
    browser.goto(served.url)
    browser.get_by_text("PAUSED", exact=True).first.wait_for()
    browser.get_by_role("button", name="Play").click()
    browser.get_by_role("button", name="Pause").wait_for()
    assert not lab.paused
    before = lab.view("joint", "FR_calf_joint").qpos[0]
    thumb = browser.get_by_role("slider").nth(8)
    box = thumb.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    browser.mouse.move(x, y)
    browser.mouse.down()
    browser.mouse.move(x - 30, y, steps=4)
    browser.mouse.up()
    robot = lab["robot"]
    index = robot.actuators.names.index("FR_calf_joint")
    browser.wait_for_timeout(1500)
    target = robot.command.targets[index]
    assert target < -1.9
    assert lab.view("joint", "FR_calf_joint").qpos[0] < before - 0.1
    assert (np.delete(robot.command.targets, index) == np.delete(robot.neutral, index)).all()
    assert not served.errors


def test_the_mouse_pulls_a_body(quadruped, browser):
    """Drag the robot up with Ctrl and the right button: it follows; space pauses the world."""
    lab, served = quadruped
    lab.play()
    browser.set_viewport_size({"width": 900, "height": 640})
    browser.goto(served.url)
    browser.get_by_text("real time").wait_for()
    browser.wait_for_timeout(4000)
    before = lab.snapshot.qpos[:3].copy()
    (client,) = served.server.get_clients().values()
    x, y = on_screen(client.camera, browser.locator("canvas").first.bounding_box(), before)
    browser.keyboard.down("Control")
    browser.mouse.move(x, y)
    browser.mouse.down(button="right")
    browser.mouse.move(x + 20, y - 80, steps=6)
    browser.mouse.move(x + 40, y - 160, steps=6)
    for _ in range(40):
        browser.wait_for_timeout(250)
        if lab.perturbation.body and lab.snapshot.qpos[2] > before[2] + 0.05:
            break
    assert lab.snapshot.qpos[2] > before[2] + 0.05
    assert np.abs(lab.snapshot.xfrc_applied).max() > 0.0
    browser.mouse.up(button="right")
    browser.keyboard.up("Control")
    for _ in range(40):
        browser.wait_for_timeout(250)
        if not lab.perturbation.body:
            break
    assert lab.perturbation.body == 0 and (lab.snapshot.xfrc_applied == 0.0).all()
    browser.keyboard.press("Space")
    browser.get_by_text("PAUSED", exact=True).first.wait_for()
    assert lab.paused and not served.errors
