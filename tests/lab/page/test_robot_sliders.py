"""Sliders of commands."""

from __future__ import annotations

import pytest

from manyworlds.lab.page.robot_sliders import command_labels


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
