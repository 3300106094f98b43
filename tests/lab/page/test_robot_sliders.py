"""Sliders of commands."""

from __future__ import annotations

import re

import pytest

from manyworlds.lab import LiveLab
from manyworlds.lab.page.robot_sliders import command_labels
from tests.browser import free_port
from tests.lab.page.conftest import give
from tests.lab.robots.test_driving import Walker
from tests.lab.server.conftest import two_robots
from tests.spec.parity import find_model


@pytest.mark.parametrize(
    ("command", "size", "labels"),
    [
        ("twist", 3, ("forward [m/s]", "left [m/s]", "turn [rad/s]")),
        ("twist", 2, ("twist 0", "twist 1")),
        ("height", 1, ("height",)),
    ],
)
def test_commands_have_labels(command, size, labels):
    """Label a twist by its components with units, other commands by their name."""
    assert command_labels(command, size) == labels


def test_ranges_follow_edits(page):
    """Narrow the range of an actuator and undo it: its slider follows, the target stays."""
    page.update()
    lab, part = page.lab, page.parts["RobotPart"]
    shoulder, elbow = part.sliders["arm"].handles
    ends = shoulder.min, shoulder.max
    give(shoulder, 15.0)
    lab.set_model(("actuator", "shoulder"), "ctrlrange", (-0.5, 0.25))
    lab.loop.iterate_once()
    page.update()
    assert (shoulder.min, shoulder.max, shoulder.step) == (-0.5, 0.25, 1e-3)
    assert shoulder.value == 0.25 and "from -0.5 to 0.25" in shoulder.hint
    assert (elbow.min, elbow.max) == ends
    lab.history.undo()
    lab.loop.iterate_once()
    page.update()
    assert (shoulder.min, shoulder.max) == ends and not page.errors
    assert lab["arm"].command.targets[0] == shoulder.value


def test_kinds_of_actuators_are_as_written(open_page):
    """Open a model with actuators of all kinds: each slider says its kind, unit and range."""
    page = open_page(find_model("here:all_kinds.xml").read_text())
    page.update()
    (sliders,) = page.parts["RobotPart"].sliders.values()
    kinds = {
        "m": "motor [3 N m], from -1 to 1",
        "p": "position [rad]",
        "v": "velocity [m/s]",
        "iv": "intvelocity [rad/s]",
        "d": "damper",
        "c": "cylinder",
        "mu": "muscle [0 to 1], from 0 to 1",
        "a": "adhesion",
        "g": "general",
        "dc": "dcmotor",
    }
    hints = {handle.label: handle.hint for handle in sliders.handles}
    assert hints.keys() == kinds.keys()
    for name, kind in kinds.items():
        assert hints[name].startswith(kind), name
        assert re.search(r"\[.+\], from \S+ to \S+$", hints[name]), hints[name]


def test_commands_are_those_that_driving_gives():
    """Drive a robot of a policy: the sliders of its commands show the velocity, and its end."""
    from manyworlds.lab.page import PageServer

    lab = LiveLab(two_robots())
    lab["go"].controller = Walker()
    lab["go"].take("policy")
    lab.driving.fastest = (0.8, 0.5, 2.5)
    page = PageServer(lab, port=free_port())
    try:
        part = page.parts["RobotPart"]
        part.period = lab.gathered.max_age = float("-inf")
        page.context.select_robot("go")
        for twist, wanted in (((1.0, 0.0, -1.0), [0.8, 0.0, -2.5]), ((0.0,) * 3, [0.0] * 3)):
            lab.driving.drive("go", twist)
            part.update(lab.snapshot)
            shown = part.commands["go"]
            assert shown.folder.visible
            assert [handle.value for _, _, handle, _ in shown.shown] == pytest.approx(wanted)
    finally:
        page.close()
        lab.stop()
