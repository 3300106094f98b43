"""Matching of recorded joints with those of a model."""

from __future__ import annotations

import numpy as np
import pytest

from manyworlds.lab.moments.recording import Recording
from manyworlds.lab.recording.matching import match_joints

ONE = {"a/hip": "hinge", "a/knee": "hinge", "a/root": "free"}
TWO = {**ONE, "b/hip": "hinge", "b/knee": "hinge"}
OLD = {"Leg_B_root": "free", "Leg_B_hip": "hinge", "Leg_B_knee": "hinge"}


def report_of(widths: dict[str, int], types: dict[str, str], kinds: dict[str, str] | None = None):
    """Match joints of these widths with joints of these types."""
    index = {name: (0, width) for name, width in widths.items()}
    recording = Recording(np.zeros(1), np.zeros((1, 7)), {"qpos": index}, kinds or {})
    return match_joints(
        recording, types, lambda name: name[0] if name[:2] in ("a/", "b/") else None
    )


@pytest.mark.parametrize(
    ("recorded", "types", "matched"),
    [
        # As they are called, whatever else is there.
        ({"a/hip": 1, "b/hip": 1}, TWO, {"a/hip": ("a/hip", "exact"), "b/hip": ("b/hip", "exact")}),
        # After a prefix.
        ({"hip": 1}, ONE, {"hip": ("a/hip", "suffix")}),
        ({"knee": 1}, OLD, {"knee": ("Leg_B_knee", "suffix")}),
        # Two robots have one: nobody knows which.
        ({"hip": 1}, TWO, {}),
        # Two were recorded that end alike, and a later rule does not change that.
        ({"c/hip": 1, "d/hip": 1}, ONE, {}),
        # Under another prefix.
        (
            {"c/hip": 1, "c/knee": 1},
            ONE,
            {"c/hip": ("a/hip", "bare"), "c/knee": ("a/knee", "bare")},
        ),
        (
            {"Leg_A_hip": 1, "Leg_A_knee": 1},
            {"hip": "hinge", "knee": "hinge"},
            {"Leg_A_hip": ("hip", "bare"), "Leg_A_knee": ("knee", "bare")},
        ),
        (
            {"Leg_A_hip": 1, "Leg_A_knee": 1},
            OLD,
            {"Leg_A_hip": ("Leg_B_hip", "bare"), "Leg_A_knee": ("Leg_B_knee", "bare")},
        ),
        # Others' sides are not one's own.
        ({"left_hip": 1, "right_hip": 1}, {"hip": "hinge"}, {}),
        # The only free joint left is the root, but only of a robot that takes part.
        ({"a/hip": 1, "base": 7}, ONE, {"a/hip": ("a/hip", "exact"), "base": ("a/root", "free")}),
        ({"base": 7}, ONE, {}),
        ({"a/hip": 1, "base": 7, "box": 7}, ONE, {"a/hip": ("a/hip", "exact")}),
        ({"a/hip": 1, "base": 7}, {**ONE, "a/box": "free"}, {"a/hip": ("a/hip", "exact")}),
        (
            {"a/hip": 1, "base": 7},
            {**ONE, "box": "free"},
            {"a/hip": ("a/hip", "exact"), "base": ("a/root", "free")},
        ),
        # What is there has another width.
        ({"a/hip": 4}, ONE, {}),
    ],
)
def test_rules(recorded, types, matched):
    """Match joints by name, and leave alone what is not sure."""
    report = report_of(recorded, types)
    assert {match.recorded: (match.joint, match.rule) for match in report.matched} == matched
    assert set(report.unmatched) == set(recorded) - set(matched)
    assert set(report.unmoved) == set(types) - {joint for joint, _ in matched.values()}


def test_the_report_says_why():
    """Read why joints move nothing."""
    report = report_of({"hip": 1, "tail": 1, "a/knee": 1}, TWO, {"a/knee": "slide"})
    assert report.unmatched == {
        "hip": "ambiguous (suffix): a/hip, b/hip",
        "tail": "no joint of this name",
        "a/knee": "'a/knee' is a hinge joint, but 1 numbers of a slide one were recorded",
    }
    assert str(report).startswith("0 joints matched (none)\nhip: ambiguous")
    assert str(report_of({"a/hip": 1}, ONE)) == (
        "1 joints matched (1 exact)\nnot recorded: a/knee, a/root"
    )
