"""Sequences of poses for the robots that come with manyworlds."""

from __future__ import annotations

from collections.abc import Mapping

from manyworlds.lab.control import RobotControl
from manyworlds.lab.sequence import Pose

_LEGS = ("FR", "FL", "RR", "RL")


def _legs(thigh: float, calf: float, legs: tuple[str, ...] = _LEGS) -> dict[str, float]:
    """Angles of thighs and calves of a quadruped [rad]."""
    return {f"{leg}_thigh_joint": thigh for leg in legs} | {
        f"{leg}_calf_joint": calf for leg in legs
    }


def _arm(*angles: float, finger: float) -> dict[str, float]:
    """Angles of an arm's first joints [rad], and its finger [m]."""
    joints = {f"joint{i}": angle for i, angle in enumerate(angles, 1)}
    return joints | {"left_finger": finger}


_STAND = Pose(name="stand", targets=_legs(0.9, -1.8), hold=1.0)

PRESETS: Mapping[str, tuple[Pose, ...]] = {
    "Arm: Reach-Grasp-Lift": (
        Pose(name="reach", targets=_arm(0.0, 1.8, 1.3, -0.5, 0.0, 0.0, finger=0.037)),
        Pose(name="grasp", targets={"left_finger": 0.0}, blend=0.5, hold=0.5),
        Pose(name="lift", targets=_arm(0.0, 1.05, 1.05, 0.0, 0.0, 0.0, finger=0.0)),
    ),
    "Arm: Wave": (
        Pose(name="left", targets={"joint1": 0.6, "joint5": 0.8}, hold=0.2),
        Pose(name="right", targets={"joint1": -0.6, "joint5": -0.8}, hold=0.2),
    ),
    "Quadruped: Sit": (
        _STAND,
        Pose(
            name="sit",
            targets=_legs(1.9, -2.7, ("RR", "RL")) | _legs(0.7, -1.2, ("FR", "FL")),
            blend=1.5,
        ),
    ),
    "Quadruped: Stand-Crouch": (
        _STAND,
        Pose(name="crouch", targets=_legs(1.25, -2.5), hold=1.0),
    ),
    "Quadruped: Stretch": (
        _STAND,
        Pose(
            name="stretch",
            targets=_legs(0.4, -1.4, ("FR", "FL")) | _legs(1.2, -1.8, ("RR", "RL")),
            blend=1.5,
        ),
    ),
}
"""Sequences by their names; robots with position actuators of these names can go through them."""


def find_presets(robot: RobotControl) -> list[str]:
    """Names of the presets whose actuators a robot has, sorted."""
    names = set(robot.actuators.names)
    return sorted(
        preset
        for preset, poses in PRESETS.items()
        if all(names.issuperset(pose.targets) for pose in poses)
    )
