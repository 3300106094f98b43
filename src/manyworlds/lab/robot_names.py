"""Names by which a model tells its robots apart."""

from __future__ import annotations

from collections.abc import Mapping

INITIAL_KEYFRAME = "init_state"
"""Keyframe of a scene's initial state."""


def robot_of(name: str, prefixes: Mapping[str, str]) -> str | None:
    """Return the robot with the longest prefix that a name begins with, or None."""
    robots = [robot for robot, prefix in prefixes.items() if name.startswith(prefix)]
    return max(robots, key=lambda robot: len(prefixes[robot]), default=None)
