"""The timeline and films on the page."""

from __future__ import annotations

import numpy as np
import pytest

from manyworlds.lab.pictures.film import CameraPath, Waypoint
from tests.lab.page.test_browser import arm, until  # noqa: F401
from tests.lab.page.test_page import iterate_once


def bar(page, **message) -> dict:
    """What the bar in the header shows after a message to it."""
    return page.parts["TransportPart"]._answer("browser 1", message)


def test_the_bar_goes_back(page):
    """Seek, step, continue from there, and return to the other future, as the bar asks for it."""
    lab = page.lab
    lab.step(400)
    lab.set_option("timestep", 0.002)
    lab.call("push_body", body=1, force=[0, 0, 1])
    lab.step(100)
    state = bar(page)["timeline"]
    assert state["duration_s"] > 0.5 and state["ago"] == 0.0 and not state["is_active"]
    assert [mark["kind"] for mark in state["marks"]] == ["push"]
    state = bar(page, seek=0.4)["timeline"]
    assert state["is_active"] and state["ago"] == pytest.approx(0.4, abs=0.003) and lab.paused
    assert bar(page, step=-5)["timeline"]["ago"] == pytest.approx(0.41, abs=0.003)
    page.keys.actions["]"]()
    assert bar(page)["timeline"]["ago"] == pytest.approx(0.408, abs=0.003)
    iterate_once(page)
    assert "PAST" in page.parts["TopBar"].banner.content
    state = bar(page, seek=1e9)["timeline"]
    assert state["ago"] < state["duration_s"]
    assert not bar(page, branch=True)["timeline"]["is_active"]
    lab.step(1)
    assert bar(page)["timeline"]["has_other"]
    assert not bar(page, swap=True)["timeline"]["is_active"]
    assert lab.snapshot.time == pytest.approx(lab.timeline.clock, abs=0.01)
    bar(page, step=-3)
    assert not bar(page, leave=True)["timeline"]["is_active"]


def test_the_same_bar_has_recordings(page):
    """Record, play, seek, step, continue from a frame, and return to the present, by the bar."""
    lab = page.lab
    lab.recorder.cfg.to_file = False
    assert bar(page, record=True)["recording"]["is_recording"] and bar(page)["records"]
    iterate_once(page, 200)
    state = bar(page, record=True)
    assert not state["recording"]["is_recording"] and state["recording"]["num_frames"] == 200
    iterate_once(page, 20)
    now = lab.snapshot
    lab.replay.start()
    assert bar(page)["replay"]["is_active"]
    page.context.toggle_pause()
    assert bar(page, seek=0.1)["replay"]["replay_time"] == 0.1
    assert bar(page, step=10)["replay"]["replay_time"] == pytest.approx(0.12)
    page.keys.actions["["]()
    page.keys.actions["N"]()
    page.keys.actions["N"]()
    assert bar(page)["replay"]["replay_time"] == pytest.approx(0.122)
    state = bar(page, leave=True)
    assert not state["replay"]["is_active"] and lab.snapshot.time == now.time
    lab.replay.start()
    bar(page, seek=0.2)
    shown = lab.snapshot
    state = bar(page, branch=True)
    assert not state["replay"]["is_active"] and not state["timeline"]["is_active"]
    assert np.array_equal(lab.snapshot.qpos, shown.qpos) and lab.snapshot.time == shown.time
    iterate_once(page, 5)
    assert lab.snapshot.time == pytest.approx(shown.time + 0.01)
    assert bar(page)["timeline"]["marks"][-1]["kind"] == "state"
    with pytest.raises(ValueError, match="newest moment"):
        bar(page, step=1)


def test_the_bar_in_a_browser(arm, browser):  # noqa: F811
    """Drag the slider in the header, step, continue, and return; record, and play that."""
    lab, page = arm
    lab.recorder.cfg.to_file = False
    lab.step(400)
    browser.goto(page.url)
    shown, tab = browser.locator("#lab-transport"), browser.get_by_role("tab").first
    slider = shown.get_by_role("slider")
    slider.wait_for()
    assert _is_above(shown, tab) and shown.get_by_text("LIVE", exact=True).is_visible()
    browser.wait_for_timeout(700)  # the slider has its length
    slider.fill("-0.5")
    shown.get_by_text("At 0.3").wait_for()
    shown.get_by_text("PAST", exact=True).wait_for()
    assert lab.timeline.is_active and lab.timeline.ago == pytest.approx(0.5, abs=0.003)
    shown.get_by_role("button", name="+10").click()
    until(browser, lambda: lab.timeline.ago < 0.485, "ten steps later")
    shown.get_by_role("button", name="Continue from here").click()
    shown.get_by_role("button", name="The other future").click()
    until(browser, lambda: lab.timeline.duration > 0.7, "the other future is back")
    shown.get_by_role("button", name="Continue from here").wait_for(state="hidden")
    assert not lab.timeline.is_active and not page.errors
    shown.get_by_role("button", name="Record").click()
    shown.get_by_role("button", name="Stop recording").wait_for()
    lab.step(100)
    shown.get_by_role("button", name="Stop recording").click()
    until(browser, lambda: not lab.recorder.is_recording, "the recording ended")
    lab.replay.loop = False
    lab.replay.start()
    shown.get_by_text("REPLAY", exact=True).wait_for()
    lab.replay.pause()
    browser.wait_for_timeout(700)
    slider.fill("0.1")
    until(browser, lambda: lab.replay.time == 0.1, "the slider is that of the recording")
    shown.get_by_role("button", name="Back to the present").click()
    shown.get_by_text("LIVE", exact=True).wait_for()  # not the recording, whose name is "live"
    assert not lab.replay.is_active
    for width in (390, 520):  # the panel is a sheet below the view
        browser.set_viewport_size({"width": width, "height": 844})
        until(browser, lambda: _is_above(shown, tab), "the bar is above the tabs")
        box = shown.bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= width


def _is_above(element, other) -> bool:
    """Whether an element ends above another one; False while one is replaced."""
    box, beyond = element.bounding_box(), other.bounding_box()
    return bool(box and beyond and box["y"] + box["height"] <= beyond["y"] + 1)


def test_the_camera_path_is_drawn_and_played(page):
    """Set a path: it is told, drawn, and started and stopped by its key; an orbit without one."""
    part, keys = page.parts["FilmPart"], page.keys.actions
    keys["O"]()
    assert part._mode == "orbit"
    iterate_once(page)
    keys["O"]()
    assert part._mode == ""
    points = [Waypoint(time=t, pos=(t, 1.0, 1.0), look_at=(0.0, 0.0, 0.0)) for t in (0.0, 2.0)]
    part._set(CameraPath(waypoints=tuple(points)))
    assert "2 waypoints, 2.0 s" in part.told.content and part._line is not None
    keys["O"]()
    assert part._mode == "path"
    iterate_once(page)
    part._remove()
    part._remove()
    assert page.lab.filmer.path.waypoints == () and part._line is None
