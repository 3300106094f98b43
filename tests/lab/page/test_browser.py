"""The page of a lab in a real browser."""

from __future__ import annotations

import time
from collections.abc import Callable

import mujoco
import numpy as np
import pytest

from manyworlds.lab import LabCfg, LiveLab, world_from_spec
from tests.browser import free_port
from tests.lab.conftest import ARM
from tests.waiting import PATIENCE_S


def serve(lab: LiveLab, port: int, **options):
    """Serve a page that is drawn with little effort: no shadows, no reflections, few pictures."""
    from manyworlds.lab.page import PageServer

    page = PageServer(lab, port=port, frame_rate=5.0, **options)
    page.server.scene.configure_default_lights(enabled=True, cast_shadow=False)
    page.server.scene.configure_environment_map(None)
    page.start()
    return page


@pytest.fixture
def arm():
    """A lab of the arm that is paused, and its page."""
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    lab = LiveLab(world_from_spec(mujoco.MjSpec.from_string(ARM)), LabCfg(start_paused=True))
    with lab:
        page = serve(lab, free_port())
        yield lab, page
        page.close()


@pytest.fixture
def arm_apart():
    """A lab of the arm that is paused, and its page in a process of its own."""
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    from manyworlds.lab.page import LabPage

    lab = LiveLab(world_from_spec(mujoco.MjSpec.from_string(ARM)), LabCfg(start_paused=True))
    with lab:
        page = LabPage(lab, port=free_port(), frame_rate=5.0)
        page.start()
        yield lab, page
        page.close()


def until(browser, condition: Callable[[], object], what: str) -> None:
    """Wait until something is so; how long it takes is up to who else uses the machine."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"not after {PATIENCE_S:.0f} s: {what}"
        browser.wait_for_timeout(100)


def camera_of(page, browser):
    """Camera of the only browser, once it is where the page has put it for a view of its shape."""
    until(browser, lambda: page.server.get_clients(), "the browser is there")
    (client,) = page.server.get_clients().values()
    initial = page.server.initial_camera.position

    def is_fitted() -> bool:
        camera = client.camera
        beside = camera.image_width < 800  # the panel is beside the view
        far = np.linalg.norm(camera.position) > 1.1 * np.linalg.norm(initial)
        return bool(beside and far and camera.position @ initial > 0.0)  # not where viser begins

    until(browser, is_fitted, "the camera is where the page puts it")
    return client.camera


def on_screen(camera, canvas: dict[str, float], point: np.ndarray) -> tuple[float, float]:
    """Position of a point of the world on the browser's page [pixel]."""
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


def after_label(browser, label: str, element: str):
    """Return the first element after a label, as an XPath step."""
    return browser.locator(f"xpath=//*[text()='{label}']/following::{element}").first


def test_a_slider_moves_a_joint(arm_apart, browser):
    """Load the page, press play, drag a slider: the joint moves; a key that is held counts once."""
    lab, page = arm_apart
    browser.goto(page.url)
    browser.get_by_text("PAUSED", exact=True).first.wait_for()
    browser.get_by_role("button", name="Play").first.click()
    browser.get_by_role("button", name="Pause").wait_for()
    assert not lab.paused
    slider = after_label(browser, "shoulder", "*[@role='slider']")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    browser.mouse.move(x, y)
    browser.mouse.down()
    browser.mouse.move(x - 30, y, steps=4)
    browser.mouse.up()
    robot = lab["arm"]
    until(browser, lambda: robot.command.targets[0] < -5.0, "the slider tells the shoulder")
    until(browser, lambda: lab.snapshot.qpos[0] < -1.0, "the shoulder moves")
    assert robot.command.targets[1] == 0.0
    browser.keyboard.press("Space")
    browser.get_by_text("PAUSED", exact=True).first.wait_for()
    until(browser, lambda: lab.snapshot.paused, "space pauses the world")
    before = lab.snapshot.step
    for _ in range(4):  # of these, the browser reports all but the first as repeated
        browser.keyboard.down("n")
    browser.keyboard.up("n")
    until(browser, lambda: lab.snapshot.step > before, "the key steps")
    browser.wait_for_timeout(500)
    assert lab.snapshot.step == before + 1 and not page.errors


def test_the_mouse_pulls_a_body(arm, browser):
    """Drag the ball up with Ctrl and the right button: it follows, and falls when let go."""
    lab, page = arm
    lab.play()
    browser.goto(page.url)
    browser.get_by_text("real time").wait_for()
    camera = camera_of(page, browser)
    canvas = browser.locator("canvas").first.bounding_box()
    looked_from = camera.position.copy()
    browser.keyboard.down("Control")
    # Before the first picture there is nothing to take hold of, and a page that cannot keep up for
    # half a second lets go.
    for _ in range(12):
        browser.wait_for_timeout(1000)
        x, y = on_screen(camera, canvas, lab.snapshot.xpos[3])
        browser.mouse.move(x, y)
        browser.mouse.down(button="right")
        browser.mouse.move(x + 10, y - 70, steps=3)
        browser.mouse.move(x + 10, y - 140, steps=3)
        for _ in range(30):
            browser.wait_for_timeout(100)
            if lab.snapshot.xpos[3, 2] > 0.15:
                break
        if lab.snapshot.xpos[3, 2] > 0.15:
            break
        browser.mouse.up(button="right")
    assert lab.snapshot.xpos[3, 2] > 0.15
    browser.mouse.up(button="right")
    browser.keyboard.up("Control")
    until(browser, lambda: not lab.perturbation.body, "the ball is let go")
    until(browser, lambda: lab.snapshot.xpos[3, 2] < 0.06, "the ball falls")
    until(browser, lambda: (lab.snapshot.xfrc_applied == 0.0).all(), "no force is left")
    np.testing.assert_allclose(camera.position, looked_from)  # a drag moves no camera
    assert not page.errors


def test_the_page_comes_back(arm, browser):
    """Stop the server: card and title tell, nothing is drawn; start it again: the page is back."""
    lab, page = arm
    browser.goto(page.url)
    browser.get_by_text("PAUSED", exact=True).first.wait_for()
    page.close()
    browser.get_by_role("alert").get_by_text("The lab has ended").wait_for()
    assert browser.title() == "The lab has ended"
    browser.evaluate("window.drawn = false; requestAnimationFrame(() => { window.drawn = true; })")
    browser.wait_for_timeout(700)
    assert not browser.evaluate("window.drawn")
    lab.play()
    again = serve(lab, int(page.url.rpartition(":")[2]))
    try:
        assert again.url == page.url
        browser.get_by_text("real time").wait_for()
        until(browser, lambda: again.server.get_clients(), "the browser is back")
    finally:
        again.close()


def _throw(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    data.qpos[2:5] = 8.0, 0.0, 0.3  # the ball
    mujoco.mj_forward(model, data)


def test_time_starts_when_the_world_is_drawn(browser):
    """Wait for the first browser; after a reload, look at where everything is by then."""
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    lab = LiveLab(world_from_spec(mujoco.MjSpec.from_string(ARM)), LabCfg(start_paused=True))
    with lab:
        page = serve(lab, free_port(), play_when_drawn=True)
        try:
            time.sleep(0.3)
            assert lab.paused and lab.snapshot.time == 0.0
            browser.goto(page.url)
            until(browser, lambda: lab.snapshot.time > 0.0, "time starts")
            lab.pause()
            lab.loop.do(_throw)
            browser.reload()
            until(
                browser,
                lambda: any(c.camera.look_at[0] > 2.0 for c in page.server.get_clients().values()),
                "the camera looks at the ball",
            )
            assert lab.paused  # only the first browser starts the time
        finally:
            page.close()


def test_a_reload_keeps_the_tab(arm, browser):
    """Open a tab, and load the page again: the tab is open; a new browser begins with the first."""
    _, page = arm
    browser.goto(page.url)
    for title in ("View", "Record"):
        browser.get_by_role("tab", name=title).click()
        browser.get_by_role("tab", name=title, selected=True).wait_for()
        browser.reload()
        browser.get_by_role("tab", name=title, selected=True).wait_for()
    browser.get_by_role("tab", name="Plots").click()
    browser.wait_for_timeout(1000)
    assert browser.get_by_role("tab", name="Plots", selected=True).is_visible(), "it stays"
    other = browser.context.browser.new_page()
    other.goto(page.url)
    other.get_by_role("tab", name="Robot", selected=True).wait_for(timeout=120_000)
    assert not page.errors


TALLER = ARM.replace(
    '<body name="upper"',
    '<body name="box" pos="0 1 .5"><freejoint/><geom size=".1"/></body><body name="upper"',
)


def test_a_token_of_before_is_explained(arm, browser):
    """Answer the page as a lab with another token does: it says from where to open it."""
    _, page = arm
    browser.goto(page.url)
    browser.get_by_role("tab", name="View").wait_for()
    browser.route("**/lab-news", lambda route: route.fulfill(status=403, body="no"))
    browser.get_by_text("The lab was started again").wait_for()


def test_a_rebuild_keeps_what_the_browser_shows(arm, browser):
    """Open a tab and a folder, type, switch an overlay on, and rebuild: all of it stays."""
    lab, page = arm
    browser.goto(page.url)
    browser.get_by_role("tab", name="View").click()
    browser.get_by_role("button", name="Joints", exact=True).click()
    browser.get_by_text("Geom groups").click()
    browser.get_by_text("Group 3").wait_for()
    until(browser, lambda: page.parts["OverlayPart"].boxes["joints"].value, "the overlay is on")
    (client,) = page.server.get_clients().values()
    until(browser, lambda: client.camera._state.update_timestamp, "the camera is known")
    position = client.camera.position.copy()
    assert lab.rebuild(world_from_spec(mujoco.MjSpec.from_string(TALLER)))
    until(browser, lambda: page.lab.model is page._model, "the page shows the new world")
    browser.get_by_text("The world was rebuilt", exact=True).wait_for()
    assert browser.get_by_role("tab", name="View").get_attribute("aria-selected") == "true"
    joints = browser.get_by_role("button", name="Joints", exact=True)
    assert joints.get_attribute("aria-pressed") == "true"
    assert browser.get_by_text("Group 3").is_visible(), "the folder is open"
    np.testing.assert_allclose(client.camera.position, position, atol=1e-6)
    browser.get_by_role("tab", name="World").click()
    browser.get_by_label("Body", exact=True).click()
    browser.get_by_role("option", name="box").wait_for()
    assert not page.errors


_DROP = """
([name, text]) => {
  const files = new DataTransfer();
  files.items.add(new File([text], name));
  window.dispatchEvent(new DragEvent("drop", {dataTransfer: files, cancelable: true}));
}
"""


def test_a_dropped_file_is_added(arm, browser):
    """Drop a model onto the page: the tab of the scene opens, and the model is in the world."""
    lab, page = arm
    browser.goto(page.url)
    browser.get_by_role("tab", name="Scene").wait_for()
    body = "<body name='cup'><freejoint/><geom size='.1'/></body>"
    cup = f"<mujoco><worldbody>{body}</worldbody></mujoco>"
    browser.evaluate(_DROP, ["cup.xml", cup])
    until(browser, lambda: "cup" in lab.scene.items, "the model is added")
    browser.get_by_role("tab", name="Scene", selected=True).wait_for()
    browser.get_by_text("Added 'cup'.").wait_for(state="attached")
    assert not page.errors


def test_only_what_a_tab_shows_scrolls(arm, browser):
    """Scroll a tab to its end: Pause and all tabs stay; on a phone, the panel is a full sheet."""
    _, page = arm
    browser.goto(page.url)
    assert browser.title() == "arm", "the name of the model"
    browser.get_by_role("tab", name="View").click()
    last = browser.get_by_text("Geom groups")
    last.wait_for(state="attached")
    last.scroll_into_view_if_needed()
    height = 480

    def is_inside(locator) -> bool:
        box = locator.bounding_box()
        return box is not None and box["y"] >= 0.0 and box["y"] + box["height"] <= height

    until(browser, lambda: is_inside(last), "the end is seen")
    assert is_inside(browser.get_by_role("button", name="Play"))
    tabs = browser.get_by_role("tab")
    places = [tabs.nth(i).bounding_box() for i in range(tabs.count())]
    assert len({place["x"] for place in places}) == 1, "they are in one column"
    shoulder = browser.get_by_role("slider", name="shoulder")
    browser.get_by_role("tab", name="Robot").click()
    shoulder.wait_for()

    browser.set_viewport_size({"width": 390, "height": 800})
    sheet = browser.locator(".mantine-Paper-root:has([role=tablist])")
    until(browser, lambda: (sheet.bounding_box() or {}).get("width") == 390, "it is a sheet")
    tops = {tabs.nth(i).bounding_box()["y"] for i in range(tabs.count())}
    assert len(tops) == 1, "they are in one row"
    view = browser.locator("canvas").first

    def overlap() -> float:
        above = view.bounding_box()
        return above["y"] + above["height"] - sheet.bounding_box()["y"]

    until(browser, lambda: overlap() <= 1.0, "the view is above it")
    assert not page.errors


def test_the_list_of_keys_closes_as_dialogs_do(arm, browser):
    """Open the list of keys, and close it by Escape, a click beside it, and its cross."""
    _, page = arm
    browser.goto(page.url)
    browser.get_by_role("tab", name="View").wait_for()
    row = browser.get_by_text("Single step", exact=True)
    for end in ("Escape", "beside", "cross"):
        browser.keyboard.press("h")
        browser.locator(".lab-close").wait_for()
        if end == "Escape":
            browser.keyboard.press("Escape")
        elif end == "beside":
            browser.mouse.click(20, 240)
        else:
            browser.locator(".lab-close").click()
        row.wait_for(state="detached")
    assert not page.errors
