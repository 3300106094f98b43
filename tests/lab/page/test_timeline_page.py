"""The timeline and films on the page."""

from __future__ import annotations

import pytest

from manyworlds.lab.film import CameraPath, Waypoint
from tests.lab.page.test_page import iterate_once


def test_the_slider_goes_back(page):
    """Drag the slider, step, continue from there, and return to the other future."""
    lab, part = page.lab, page.parts["TimelinePart"]
    lab.step(400)
    lab.set_option("timestep", 0.002)
    lab.call("push_body", body=1, force=[0, 0, 1])
    lab.step(100)
    page.context.lab._read_at = -1e9
    part.update(lab.snapshot)
    assert part.slider.min < -0.5 and part.slider.value == 0.0 and part.branch.disabled
    assert [mark.label for mark in part.slider._marks] == ["➶"]
    part._seek(-0.4)
    part._touched = -1e9
    part.update(lab.snapshot)
    assert not part.branch.disabled and lab.paused
    assert part.slider.value == pytest.approx(-0.4, abs=0.003) and "s ago" in part.note.content
    part._branch()
    lab.step(1)
    part.update(lab.snapshot)
    assert part.swap.visible and part.branch.disabled
    lab.call("timeline_swap")
    assert lab.snapshot.time == pytest.approx(lab.timeline.clock, abs=0.01)


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
