"""Driving from the page in a real browser: keys, pads, gamepads, and what stops the robot."""

from __future__ import annotations

import json
import logging
import time
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from manyworlds.lab import LabCfg, LiveLab
from manyworlds.lab.errors import LabEndedError
from manyworlds.lab.page.chase_camera import ChaseCamera
from manyworlds.lab.page.drive_socket import DriveSocket
from manyworlds.lab.robots.controllers import PdController
from manyworlds.utils.web_access import WebAccess
from tests.browser import free_port
from tests.lab.page.conftest import give, press
from tests.lab.page.test_browser import serve, until
from tests.lab.page.test_page import iterate_once
from tests.lab.robots.test_driving import Walker
from tests.lab.server.conftest import two_robots
from tests.lab.server.waiting import until as wait_until
from tests.waiting import PATIENCE_S

GAMEPAD = """
window.fakePad = null;
navigator.getGamepads = () => [window.fakePad];
window.plug = () => { window.fakePad = {id: "test pad", connected: true,
    mapping: "standard", axes: [0, 0, 0, 0],
    buttons: Array.from({length: 16}, () => ({value: 0, pressed: false}))}; };
"""


@pytest.fixture
def driven():
    """A lab of two robots, one of which takes a velocity, and its page."""
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    with LiveLab(two_robots(), LabCfg(start_paused=True)) as lab:
        lab["go"].controller = Walker()
        page = serve(lab, free_port())
        yield lab, page
        page.close()


def twist_is(browser, lab: LiveLab, *wanted: float) -> None:
    """Wait until the robot has a velocity."""
    law = lab["go"].controller
    until(browser, lambda: np.allclose(law.twist, wanted, atol=0.01), f"the velocity is {wanted}")


def start_driving(browser, page):
    """Open the page, and press its button; return the box."""
    browser.add_init_script(GAMEPAD)
    browser.goto(page.url)
    box = browser.locator("#lab-drive")
    box.get_by_role("button", name="Drive").click()
    box.get_by_role("button", name="Stop driving").wait_for()
    return box


@pytest.mark.slow
def test_keys_and_pads_drive(driven, browser):
    """Drive by keys and pads: the velocity follows them, and ends as they do."""
    lab, page = driven
    box = start_driving(browser, page)
    assert box.locator("select").is_hidden(), "there is one robot to drive"
    browser.keyboard.down("w")
    twist_is(browser, lab, 0.8, 0.0, 0.0)
    browser.wait_for_timeout(1200)
    twist_is(browser, lab, 0.8, 0.0, 0.0)
    browser.keyboard.down("a")
    twist_is(browser, lab, 0.8, 0.5, 0.0)
    box.get_by_text("Ahead 0.80 m/s, left 0.50 m/s, turn 0.00 rad/s").wait_for()
    browser.keyboard.up("w")
    browser.keyboard.up("a")
    twist_is(browser, lab, 0.0, 0.0, 0.0)
    for number, key in enumerate("1234567890"):
        browser.keyboard.down(key)
        until(browser, lambda mask=1 << number: lab["go"].actions == mask, f"only {key} is on")
        browser.keyboard.up(key)
    until(browser, lambda: lab["go"].actions == 0, "the action is off")

    browser.keyboard.down("q")
    twist_is(browser, lab, 0.0, 0.0, 1.57)
    browser.evaluate("window.dispatchEvent(new Event('blur'))")
    twist_is(browser, lab, 0.0, 0.0, 0.0)
    browser.keyboard.up("q")

    place = box.locator("#lab-pad-move").bounding_box()
    middle = place["x"] + place["width"] / 2, place["y"] + place["height"] / 2
    browser.mouse.move(*middle)
    browser.mouse.down()
    browser.mouse.move(middle[0], place["y"] + 1)
    until(browser, lambda: lab["go"].controller.twist[0] > 0.75, "the pad drives forward")
    browser.mouse.move(place["x"] + 1, middle[1])
    until(browser, lambda: lab["go"].controller.twist[1] > 0.45, "left on the pad is left")
    browser.mouse.up()
    twist_is(browser, lab, 0.0, 0.0, 0.0)

    browser.keyboard.down("w")
    twist_is(browser, lab, 0.8, 0.0, 0.0)
    browser.close()
    wait_until(lambda: not any(lab["go"].controller.twist), "the robot goes on")
    assert not page.errors


@pytest.mark.slow
def test_gamepads_drive_and_vanish(driven, browser):
    """Drive by a gamepad, which disappears; then drive the other robot, which has bindings."""
    lab, page = driven
    box = start_driving(browser, page)
    browser.evaluate("plug()")
    box.get_by_text("test pad").wait_for()
    browser.evaluate("fakePad.axes = [0, -1, 0, 0]")
    twist_is(browser, lab, 0.8, 0.0, 0.0)
    browser.evaluate("fakePad.axes = [-1, 0, 1, 0]")
    twist_is(browser, lab, 0.0, 0.5, -1.57)
    browser.evaluate("plug(); fakePad.id = 'other'; fakePad.mapping = ''; fakePad.axes[2] = -1")
    box.get_by_text("other").wait_for()
    twist_is(browser, lab, 0.0, 0.0, 0.0)  # of another layout: a trigger rests at -1
    browser.evaluate("fakePad.axes = [0, -1, -1, 0]")
    twist_is(browser, lab, 0.8, 0.0, 0.0)
    browser.evaluate("plug()")
    box.get_by_text("test pad").wait_for()
    browser.evaluate("fakePad = null")
    twist_is(browser, lab, 0.0, 0.0, 0.0)
    box.get_by_text("The gamepad 'test pad' is gone: its robot stops.").wait_for()

    lab["go2"].take("panel")
    lab.bindings.bind("KeyG", "hip", 2.0, robot="go2")
    lab.bindings.bind("Button0", "lag", 0.5, "toggle", robot="go2")
    browser.keyboard.press("Escape")
    box.get_by_role("button", name="Drive").click()
    box.locator("select").select_option("go2")
    until(browser, lambda: not lab.driving.drivers.get("go"), "the other robot is left")
    browser.keyboard.down("g")
    until(browser, lambda: lab["go2"].command.targets[0] == 2.0, "the key moves the actuator")
    browser.keyboard.up("g")
    until(browser, lambda: lab["go2"].command.targets[0] == 0.0, "the key is up")
    browser.evaluate("plug(); fakePad.buttons[0].value = 1")
    until(browser, lambda: lab["go2"].command.targets[1] == 0.5, "the button toggles")
    assert not page.errors


def talk(socket, **message) -> dict:
    """Exchange one message, as the script of the page does."""
    socket.send(json.dumps(message))
    return json.loads(socket.recv(timeout=PATIENCE_S))


def test_the_socket_of_the_page(driven):
    """Talk as browsers do: errors are sentences, strangers are refused, silence stops."""
    lab, page = driven
    port = page.parts["DrivePart"].socket.port
    address = f"ws://127.0.0.1:{port}"
    with pytest.raises(InvalidStatus, match="403"):
        connect(address, origin="http://elsewhere.example")
    origin = page.url
    lab.driving.clock = lambda: 0.0  # silence ends nothing now, but the end of a socket does
    with connect(address, origin=origin) as first, connect(address) as second:
        assert talk(first, ask="list") == {"robots": {"go": {"velocity": True, "inputs": {}}}}
        drive = {"ask": "drive", "robot": "go", "twist": [1, 0, 0], "inputs": {}, "actions": 1}
        assert talk(first, **drive)["twist"] == [0.8, 0.0, 0.0]
        assert talk(second, **drive) == {"error": "'go' is driven by browser 1."}
        assert talk(second, ask="fly")["error"].startswith("A page has no message 'fly'")
        assert talk(second, **(drive | {"robot": "g"}))["error"].startswith("drive: robot must be")
        assert talk(second, **(drive | {"twist": [1]}))["error"].startswith(
            "drive: twist must be 3"
        )
        second.send("[")
        assert "error" in json.loads(second.recv(timeout=PATIENCE_S))
        assert lab["go"].controller.twist == [0.8, 0.0, 0.0]
    wait_until(lambda: not any(lab["go"].controller.twist), "the robot goes on")
    wait_until(lambda: not page.parts["DrivePart"]._robots, "the browser is remembered")


@pytest.mark.parametrize("error", [LabEndedError(), ZeroDivisionError("no brake")])
def test_a_robot_that_cannot_be_stopped_is_told(error, caplog):
    """Let the end of a browser fail: the log has it, unless the lab has ended."""
    heard = []

    def left(browser: str) -> None:
        heard.append(browser)
        raise error

    access = WebAccess()
    socket = DriveSocket(access, lambda browser, message: {"at": np.zeros(2)}, left)
    access.ports.add(socket.port)
    try:
        with caplog.at_level(logging.ERROR), connect(f"ws://127.0.0.1:{socket.port}") as peer:
            assert talk(peer, ask="list")["error"].startswith("TypeError"), "it cannot be sent"
        wait_until(lambda: heard, "the end of the browser is heard")
        if isinstance(error, LabEndedError):
            time.sleep(0.2)
            assert "browser 1 drove" not in caplog.text
        else:
            wait_until(lambda: "browser 1 drove" in caplog.text, "the log has it")
    finally:
        socket.close()


def test_other_machines_drive_through_the_gate(monkeypatch):
    """Serve a page to other machines: driving needs the token, and no further port."""
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    from manyworlds.lab.page import PageServer

    lab = LiveLab(two_robots())
    lab["go"].controller = Walker()
    page = PageServer(lab, host="0.0.0.0", port=free_port())
    try:
        host = page.url.split("/")[2]
        token = page.url.partition("token=")[2]
        with pytest.raises(InvalidStatus, match="403"):
            connect(f"ws://{host}/lab-drive")
        with connect(f"ws://{host}/lab-drive?token={token}") as socket:
            assert "go" in talk(socket, ask="list")["robots"]
    finally:
        page.close()
        lab.stop()


def test_the_table_of_bindings(page):
    """Bind and unbind on the page, and move the sliders of the speeds; errors are beside them."""
    controls, lab = page.parts["DriveControls"], page.lab
    iterate_once(page)
    assert not any(slider.visible for slider in controls.sliders), "no robot takes a velocity"
    lab["arm"].controller = Walker()
    iterate_once(page)
    assert [slider.value for slider in controls.sliders] == [0.8, 0.5, 1.57]
    assert all(slider.visible for slider in controls.sliders)
    give(controls.sliders[0], 2.0)
    assert lab.driving.fastest == (2.0, 0.5, 1.57)
    bind, unbind = (page_button(page, name) for name in ("Bind", "Unbind"))
    give(controls.actuator, "elbow")
    press(bind)
    iterate_once(page)
    assert [known.actuator for known in lab.bindings.table] == ["elbow"]
    assert "KeyG" in controls.table.content and "elbow" in controls.table.content
    give(controls.input, "Key G")
    press(bind)
    assert "There is no input" in controls.note.content and len(lab.bindings.table) == 1
    give(controls.input, "KeyG")
    press(unbind)
    assert not lab.bindings.table


def test_commanded_and_applied_controls(page):
    """Let a PD law drive the arm: the targets and the controls that it computes are both shown."""
    part, lab = page.parts["AppliedPart"], page.lab
    iterate_once(page)
    assert "<td" not in part.table.content, "it is off at first"
    lab["arm"].take("panel")
    lab["arm"].controller = PdController(lab.model, lab["arm"].actuators, kp=10.0)
    lab["arm"].write("panel", {"elbow": 0.25})
    part.box.value = True
    iterate_once(page)
    iterate_once(page)
    control = lab.snapshot.ctrl[1]
    assert abs(control) > 0.1 and control != 0.25
    for number in ("0.250", f"{control:.3f}", f"{lab.snapshot.actuator_force[1]:.2f}"):
        assert f">{number}<" in part.table.content


def test_launches_and_contacts_on_the_page(page):
    """Aim and launch on the page, by the key, too; log contacts; errors are beside the buttons."""
    launcher, contacts, lab = page.parts["LauncherPart"], page.parts["ContactPart"], page.lab
    iterate_once(page)
    page.context.attempt(page.keys.actions["L"])
    assert "Nothing was aimed" in page.context.message
    assert launcher.body.options == ("ball",) and "ball" in launcher.target.options
    give(launcher.target, "lower")
    press(page_button(page, "Aim and launch"))
    assert "flies with" in launcher.note.content
    assert lab.loop.data.joint(2).qvel[:3].any()
    page.context.attempt(page.keys.actions["L"])
    assert not page.context.message
    give(launcher.target, "ball")
    press(page_button(page, "Aim and launch"))
    assert "aimed at itself" in launcher.note.content
    give(contacts.first, "ball")
    give(contacts.watching, True)
    for _ in range(600):
        lab.loop.iterate_once()
    iterate_once(page)
    assert "ball / " in contacts.table.content and len(lab.contacts.watches) == 1
    give(contacts.first, "bal")
    assert "No body matches" in contacts.note.content and not contacts.watching.value
    assert not lab.contacts.watches


def page_button(page, label: str):
    """Button of a page by its label."""
    handles = page.server.gui._gui_input_handle_from_uuid.values()
    return next(handle for handle in handles if getattr(handle, "label", "") == label)


def test_the_camera_stays_behind():
    """Follow a robot: the camera comes near its place behind and above it."""
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>"
    )
    moved = []
    client = SimpleNamespace()
    view = SimpleNamespace(
        follow=1,
        offset=np.zeros(3),
        server=SimpleNamespace(get_clients=lambda: {0: client}),
        update=lambda snapshot: None,
        look=lambda *args, **kwargs: None,
    )
    data = mujoco.MjData(model)
    data.qpos[:3] = 1.0, 2.0, 0.5
    data.qpos[3:] = np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)  # faces +y
    mujoco.mj_forward(model, data)
    snapshot = SimpleNamespace(xpos=data.xpos.copy(), xquat=data.xquat.copy())
    import manyworlds.lab.page.chase_camera as module

    before, module.move_camera = module.move_camera, lambda client, *view: moved.append(view)
    try:
        camera = ChaseCamera(view, "robot", 1)
        assert view.follow == 0
        camera.move(snapshot, 0.03)
        position, look_at = moved[-1]
        np.testing.assert_allclose(look_at, [1.0, 2.0, 0.8])
        pitch = np.radians(20.0)
        wanted = look_at + 3.0 * np.array([0.0, -np.cos(pitch), np.sin(pitch)])
        np.testing.assert_allclose(position, wanted, atol=1e-12)
        snapshot.xpos[1, 0] += 1.0
        distances = []
        for _ in range(100):
            camera.move(snapshot, 0.03)
            distances.append(np.linalg.norm(moved[-1][1] - [2.0, 2.0, 0.8]))
        # It approaches at 3/s.
        np.testing.assert_allclose(distances, np.exp(-3.0 * 0.03 * np.arange(1, 101)), rtol=1e-9)
        camera.leave(snapshot)
        assert view.follow == 1
    finally:
        module.move_camera = before
