"""The timeline and films on the page."""

from __future__ import annotations

import pytest

from manyworlds.lab.pictures.film import CameraPath, Waypoint
from tests.lab.page.test_browser import arm, until  # noqa: F401
from tests.lab.page.test_page import iterate_once


def test_the_bar_goes_back(page):
    """Seek, step, continue from there, and return to the other future, as the bar asks for it."""
    lab, part = page.lab, page.parts["TimelinePart"]

    def bar(**message) -> dict:
        state = part._answer("browser 1", message)["timeline"]
        if not message:
            lab.gathered.expire()
            part.update(lab.snapshot)
            state = part._answer("browser 1", {})["timeline"]
        return state

    lab.step(400)
    lab.set_option("timestep", 0.002)
    lab.call("push_body", body=1, force=[0, 0, 1])
    lab.step(100)
    state = bar()
    assert state["duration_s"] > 0.5 and state["ago"] == 0.0 and not state["is_active"]
    assert [mark["kind"] for mark in state["marks"]] == ["push"]
    assert bar(seek=0.4)["is_active"] and bar()["ago"] == pytest.approx(0.4, abs=0.003)
    assert lab.paused and bar(step=-5)["ago"] == pytest.approx(0.41, abs=0.003)
    assert bar(seek=1e9)["ago"] < bar()["duration_s"]
    assert not bar(branch=True)["is_active"]
    lab.step(1)
    assert bar()["has_other"] and not bar(swap=True)["is_active"]
    assert lab.snapshot.time == pytest.approx(lab.timeline.clock, abs=0.01)


def test_the_bar_in_a_browser(arm, browser):  # noqa: F811
    """Drag the slider at the bottom, step, continue, and return, by the buttons."""
    lab, page = arm
    lab.step(400)
    browser.goto(page.url)
    bar, panel = browser.locator("#lab-timeline"), browser.get_by_role("tab").first
    slider = bar.get_by_role("slider")
    slider.wait_for()
    place, view = bar.bounding_box(), browser.locator("canvas").first.bounding_box()
    assert place["y"] + place["height"] > 0.9 * 480 and place["height"] < 60
    assert place["x"] + place["width"] <= view["x"] + view["width"] < panel.bounding_box()["x"] + 1
    browser.wait_for_timeout(700)  # the slider has its length
    slider.fill("-0.5")
    bar.get_by_text("At 0.3").wait_for()
    assert lab.timeline.is_active and lab.timeline.ago == pytest.approx(0.5, abs=0.003)
    bar.get_by_role("button", name="+10").click()
    until(browser, lambda: lab.timeline.ago < 0.485, "ten steps later")
    bar.get_by_role("button", name="Continue from here").click()
    bar.get_by_role("button", name="The other future").click()
    until(browser, lambda: lab.timeline.duration > 0.7, "the other future is back")
    bar.get_by_role("button", name="Continue from here").wait_for(state="hidden")
    assert not lab.timeline.is_active and not page.errors
    for width in (520, 640):  # the panel is below the view, or beside a narrow one
        browser.set_viewport_size({"width": width, "height": 480})
        until(browser, lambda: _is_beside(bar, panel), "the bar does not cover the panel")


def _is_beside(element, other) -> bool:
    """Whether an element ends left of another one or above it; False while one is replaced."""
    box, beyond = element.bounding_box(), other.bounding_box()
    if not box or not beyond:
        return False
    return box["x"] + box["width"] < beyond["x"] or box["y"] + box["height"] < beyond["y"]


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
