"""The page of a share folder, in a real browser, with small graphs of its own."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from PIL import Image

from manyworlds.rl.plain_rays import height_scan
from tests.browser import FEW_PICTURES
from tests.share.shown import MOTION, RAYS, WEDGE, WORLD, serve, write_small_folder

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, vendored: Path) -> Path:
    """A folder with two worlds and three policies."""
    folder = tmp_path_factory.mktemp("shared")
    write_small_folder(folder, vendored)
    return folder


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """Where the folder is served."""
    with serve(folder) as address:
        yield address


@pytest.fixture(scope="module")
def opened(chromium: Any, address: str) -> Any:
    """The page on a desktop; `requested` holds the addresses of all that it asked for."""
    page = chromium.new_page(viewport={"width": 1000, "height": 640})
    page.add_init_script(FEW_PICTURES)
    page.set_default_timeout(120_000)
    page.requested = []
    page.on("request", lambda request: page.requested.append(request.url))
    page.goto(address)
    page.evaluate("manyworlds.ready")
    page.evaluate("manyworlds.pause()")
    return page


@pytest.fixture
def page(opened: Any) -> Any:
    """The page, paused at the start of an episode of the first world and policy."""
    opened.evaluate("manyworlds.choose({world: 0, policy: 0})")
    opened.evaluate("manyworlds.setCommand('arm', [0.25])")
    opened.evaluate("manyworlds.pause()")
    opened.evaluate("manyworlds.reset()")
    return opened


def step(page: Any, periods: int) -> dict[str, Any]:
    """Advance by control periods; return the state."""
    return page.evaluate(f"manyworlds.stepControl({periods})")


def wait_until_drawn(page: Any) -> None:
    """Wait until the present state is on the screen."""
    picture = "await new Promise(requestAnimationFrame);"
    page.evaluate(f"(async () => {{ {3 * picture} await manyworlds.state(); }})()")


def picture_of(page: Any) -> np.ndarray:
    """Return what the page shows, shape [height, width, 3]."""
    return np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("RGB"), int)


def share_of(pixels: np.ndarray, *, blue: bool) -> float:
    """Return the share of the picture that is strongly red, or blue, without its controls."""
    red_part, green_part, blue_part = np.moveaxis(pixels[:540, :600], 2, 0)
    strong, weak = (blue_part, red_part) if blue else (red_part, blue_part)
    return float(((strong > 90) & (strong > 2 * weak) & (strong > 2 * green_part)).mean())


def python_world() -> tuple[mujoco.MjModel, mujoco.MjData]:
    """The small world in Python, at its start."""
    model = mujoco.MjModel.from_xml_string(WORLD, {"wedge.obj": WEDGE.encode()})
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_step1(model, data)
    return model, data


def test_control_periods_are_those_of_plain_playback(page):
    """Step memories, commands and physics as a loop in Python does."""
    model, data = python_world()
    for count in range(5):
        data.ctrl[0] = 0.4 + 0.01 * (2 + count)
        for _ in range(4):
            mujoco.mj_step(model, data)
    page.evaluate("manyworlds.setCommand('arm', [0.4])")
    state = step(page, 5)
    assert state["ctrl"][0] == pytest.approx(data.ctrl[0], abs=1e-7)  # commands are float32
    np.testing.assert_allclose(state["qpos"], data.qpos, atol=1e-6)
    np.testing.assert_allclose(state["qvel"], data.qvel, atol=1e-5)
    assert state["time"] == pytest.approx(0.1)


def test_graphs_may_run_in_each_physics_step(page):
    """Tell a graph of actuator laws when a control period begins."""
    page.evaluate("manyworlds.choose({policy: 1})")
    page.evaluate("manyworlds.reset()")
    for _ in range(2):
        assert step(page, 1)["ctrl"][0] == pytest.approx(0.3)


def test_velocities_and_rays_are_those_of_python(page):
    """Give a graph velocities of elements and distances of rays, as plain playback does."""
    model, data = python_world()
    velocity = np.zeros(6)
    site = mujoco.mjtObj.mjOBJ_SITE
    mujoco.mj_objectVelocity(model, data, site, model.site("nose").id, velocity, 1)
    page.evaluate("manyworlds.choose({policy: 2})")
    page.evaluate("manyworlds.reset()")
    ctrl = step(page, 1)["ctrl"]
    np.testing.assert_allclose(ctrl[:3], velocity[3:], atol=1e-12)
    # Rays are directed: `height_scan` knows the heights of hits, which follow from distances.
    heights = height_scan(model, data, RAYS)
    assert len(set(heights)) == 3
    directions = np.array(RAYS["directions"])
    np.testing.assert_allclose(-directions[:2, 2] * ctrl[3:5], heights[:2], atol=1e-12)
    assert ctrl[5] == -1.0


def test_the_folder_is_all_that_is_asked_for(page, address):
    """Ask no other host for anything."""
    assert len(page.requested) > 10
    others = [url for url in page.requested if not url.startswith((address, "data:"))]
    assert others == []


def test_time_goes_on_pauses_and_steps(page):
    """Run in real time, pause and step by keys and buttons."""
    page.keyboard.press("Space")
    page.wait_for_function("manyworlds.state().then(state => state.time > 0.2)")
    page.get_by_role("button", name="Pause").click()
    before = page.evaluate("manyworlds.state()")["time"]
    page.get_by_role("button", name="One control period").click()
    assert page.evaluate("manyworlds.state()")["time"] == pytest.approx(before + 0.02, abs=0.016)
    page.get_by_title("Speed 0.25").click()
    page.keyboard.press("KeyR")
    page.wait_for_function("manyworlds.state().then(state => state.time === 0)")
    page.locator("[aria-pressed=true]").get_by_text(".25\u00d7").wait_for()
    page.get_by_title("Speed 1 times").click()


def test_a_reset_moves_joints_a_little(page):
    """Start beside the exact start by the button, so that a symmetric policy knows which leg."""
    exact = page.evaluate("manyworlds.state()")["qpos"]
    page.get_by_role("button", name="Reset (R)").click()
    near = page.evaluate("manyworlds.state()")["qpos"]
    assert near[:7] == exact[:7]
    assert 0.0 < abs(near[7] - exact[7]) <= 0.005


def test_keys_drive_while_they_are_held(page):
    """Drive a command's component to its bounds by keys, and back to the slider's value."""
    slider = page.get_by_role("slider", name="angle")
    for key, value in (("KeyA", 0.5), ("KeyD", -1.0)):
        page.locator("#view").focus()
        page.keyboard.down(key)
        page.wait_for_function(
            f"document.querySelector('input[type=range]').valueAsNumber === {value}"
        )
        ctrl = step(page, 1)["ctrl"][0]
        assert value < ctrl < value + 0.05
        page.keyboard.up(key)
    slider.fill("0.125")
    page.evaluate("manyworlds.reset()")
    assert step(page, 1)["ctrl"][0] == pytest.approx(0.145)


def test_the_mouse_pushes_bodies(page):
    """Pull a body by a spring while the mouse holds it, and move the camera elsewhere."""
    free = step(page, 10)["qpos"]
    page.evaluate("manyworlds.reset()")
    box = page.locator("#view").bounding_box()
    covered = page.locator("#panel").bounding_box()["width"]
    x, y = (box["width"] - covered) / 2, box["height"] / 2
    wait_until_drawn(page)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 150, y - 150, steps=3)
    pushed = step(page, 10)["qpos"]
    page.mouse.up()
    assert pushed[2] > free[2] + 0.05
    page.evaluate("manyworlds.reset()")
    np.testing.assert_array_equal(step(page, 10)["qpos"], free)
    page.mouse.move(40, 500)
    page.mouse.down()
    page.mouse.move(140, 500, steps=3)
    page.mouse.up()
    page.evaluate("manyworlds.reset()")
    np.testing.assert_array_equal(step(page, 10)["qpos"], free)


def test_goals_are_dragged(page):
    """Drag the ball of a command that names a point; its sliders follow."""
    wait_until_drawn(page)
    x, y = page.evaluate("manyworlds.screenOf([-0.6, 0.2, 0.035])")
    page.mouse.move(x, y)
    page.mouse.down()
    x, y = page.evaluate("manyworlds.screenOf([0.4, -0.3, 0.035])")
    page.mouse.move(x, y, steps=3)
    page.mouse.up()
    wait_until_drawn(page)
    sliders = [page.get_by_role("slider", name=f"{axis} [m]").input_value() for axis in "xy"]
    np.testing.assert_allclose(np.array(sliders, float), [0.4, -0.3], atol=0.03)
    page.get_by_role("button", name="Reset command").click()
    wait_until_drawn(page)
    assert float(page.get_by_role("slider", name="y [m]").input_value()) == pytest.approx(0.2)


def test_random_values_are_drawn_anew_and_taken_back(page):
    """Draw masses from the task's range by a button, show them, and restore the compiled ones."""
    compiled = step(page, 20)["qpos"]
    page.get_by_role("button", name="Draw anew").click()
    page.wait_for_function("/\\d/.test(document.querySelector('table tr td + td').textContent)")
    texts = page.locator("table tr td").all_inner_texts()
    assert texts[0] == "mass"
    assert texts[2] == "\u00d7 2 … 3"
    drawn = [float(number) for number in re.findall(r"[\d.]+", texts[1])]
    assert all(2.0 <= number <= 3.0 for number in drawn)
    page.evaluate("manyworlds.reset()")
    heavy = step(page, 20)["qpos"]
    assert np.abs(np.subtract(heavy, compiled)).max() > 1e-4
    page.get_by_role("button", name="As compiled").click()
    page.wait_for_function("document.querySelector('table tr td + td').textContent === '\u2013'")
    page.evaluate("manyworlds.reset()")
    np.testing.assert_array_equal(step(page, 20)["qpos"], compiled)


def test_worlds_and_policies_are_chosen(page):
    """Show another variant of a world, with a flex, in which the policy goes on."""
    light = step(page, 20)["qpos"]
    page.get_by_role("combobox", name="World").select_option("heavy block")
    page.wait_for_function("document.querySelector('#heading p').textContent.includes('heavy')")
    page.evaluate("manyworlds.reset()")
    wait_until_drawn(page)
    assert 0.002 < share_of(picture_of(page), blue=True) < 0.2
    heavy = step(page, 20)["qpos"]
    assert len(heavy) > len(light)
    assert np.abs(np.subtract(heavy[:8], light)).max() > 1e-4


def test_the_card_says_what_was_trained(page):
    """Name task, time, evaluation, command, and both versions of MuJoCo."""
    text = page.locator("#card").inner_text()
    for part in ("Block", "5 min on 2 cores", "0.9", "manyworlds share runs/block"):
        assert part in text
    assert "3.14.0" in text
    assert "4.0.0" in text


def test_wrong_commands_are_refused(page):
    """Say which commands there are, and how many numbers one takes."""
    for name, values, part in (("leg", [1], "there are: arm"), ("arm", [1, 2], "takes 1 numbers")):
        code = f"manyworlds.setCommand('{name}', {values}).catch(error => error.message)"
        assert part in page.evaluate(code)


def test_geoms_are_drawn(page):
    """Draw the block in its color, on the floor."""
    wait_until_drawn(page)
    pixels = picture_of(page)
    assert 0.002 < share_of(pixels, blue=False) < 0.3
    floor = pixels[300:400, :100].reshape(-1, 3)
    assert floor.mean() > 100
    assert len(np.unique(floor, axis=0)) > 20


def test_phones_get_pads_and_a_sheet_and_frames_get_little(chromium, address):
    """Open the controls by a button on a phone; embedded, show the world with two buttons."""
    phone = chromium.new_page(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, color_scheme="dark"
    )
    phone.add_init_script(FEW_PICTURES)
    phone.goto(address)
    phone.evaluate("manyworlds.ready")
    assert not phone.locator("#panel").is_visible()
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    phone.locator("#menu").tap()
    assert phone.locator("#panel").is_visible()
    phone.goto(address + "?embed")
    phone.evaluate("manyworlds.ready")
    assert phone.locator("#panel, #heading, #menu").count() == 0
    names = [button.get_attribute("aria-label") for button in phone.locator("#bar > *").all()]
    assert names == ["Reset (R)", "Pause (space)", "Open the whole page"]
    phone.close()


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"version": 99}, "of version 99"),
        ({"worlds": [{"name": "x", "model": "no.xml", "files": []}]}, "'no.xml' is missing (404)"),
        ({"policies": "timestep"}, "was trained with 0.01 s"),
    ],
)
def test_what_cannot_be_shown_is_said(chromium, folder, change, part):
    """Say in one sentence why a folder cannot be shown."""
    description = json.loads((folder / "world.json").read_text())
    if change.get("policies"):
        change = {"policies": [{**description["policies"][0], "timestep": 0.01}]}
    page = chromium.new_page()
    page.route("**/world.json", lambda route: route.fulfill(json={**description, **change}))
    with serve(folder) as address:
        page.goto(address)
        page.locator("#failure").wait_for()
    assert part in page.locator("#failure").inner_text()
    page.close()


def test_a_recorded_motion_plays_until_physics_takes_over(page):
    """Show poses at their times in a loop, and let physics continue from the one that is shown."""
    page.evaluate("manyworlds.choose({world: 2, policy: 0})")
    np.testing.assert_allclose(page.evaluate("manyworlds.state()")["qpos"], MOTION[0, :8])
    state = step(page, 2)
    np.testing.assert_allclose(state["qpos"], MOTION[2, :8], rtol=1e-6)
    np.testing.assert_allclose(state["qvel"], MOTION[2, 8:], rtol=1e-6)
    assert state["time"] == pytest.approx(0.04)
    np.testing.assert_allclose(step(page, 3)["qpos"], MOTION[1, :8], rtol=1e-6)  # it began again
    page.get_by_role("button", name="Continue from here").click()
    model, data = python_world()
    data.qpos[:] = MOTION[1, :8].astype(np.float32)
    data.qvel[:] = MOTION[1, 8:].astype(np.float32)
    mujoco.mj_step1(model, data)
    data.ctrl[0] = 0.25 + 0.01 * 2
    for _ in range(4):
        mujoco.mj_step(model, data)
    state = step(page, 1)
    np.testing.assert_allclose(state["qpos"], data.qpos, atol=1e-6)
    page.evaluate("manyworlds.choose({world: 0, policy: 0})")
    assert page.get_by_role("button", name="Continue from here").count() == 0
