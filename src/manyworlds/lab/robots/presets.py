"""Pose sequences for the robots that come with manyworlds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from manyworlds.lab.robots.control import RobotControl
from manyworlds.lab.robots.sequence import Pose, PoseSequencer

_LEGS = ("FR", "FL", "RR", "RL")


def _legs(thigh: float, calf: float, legs: tuple[str, ...] = _LEGS) -> dict[str, float]:
    """Return targets of thighs and calves of a quadruped [rad]."""
    return {f"{leg}_thigh_joint": thigh for leg in legs} | {
        f"{leg}_calf_joint": calf for leg in legs
    }


def _arm(*angles: float) -> dict[str, float]:
    """Return targets of an arm's first joints [rad]."""
    return {f"joint{i}": angle for i, angle in enumerate(angles, 1)}


# The hand above and around a 4 cm cube on the ground, 0.3 m in front of the arm.
_ABOVE = _arm(0.0, 1.266, 0.964, -0.668, 0.0, 0.0)
_AROUND = _arm(0.0, 1.396, 0.633, -0.208, 0.0, 0.0)
_OPEN = {"left_finger": 0.035}  # [m]
_CLOSED = {"left_finger": -0.002}  # [m]

_STAND = Pose(name="stand", targets=_legs(0.9, -1.8), hold=1.0)

PRESETS: Mapping[str, tuple[Pose, ...]] = {
    "Arm: Reach-Grasp-Lift": (
        Pose(name="reach", targets=_ABOVE | _OPEN),
        Pose(name="lower", targets=_AROUND, hold=0.5),
        Pose(name="grasp", targets=_CLOSED, blend=0.5, hold=0.5),
        Pose(name="lift", targets=_arm(0.0, 1.05, 1.05, 0.0, 0.0, 0.0), blend=2.0),
        Pose(name="put down", targets=_AROUND, blend=2.0, hold=0.5),
        Pose(name="release", targets=_OPEN, blend=0.5, hold=0.5),
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
"""Pose sequences by name, for robots with position actuators of the names that they use."""


def find_presets(robot: RobotControl | Iterable[str]) -> list[str]:
    """Return the names of the presets whose actuators a robot has, sorted.

    Args:
        robot: the robot, or the names of its actuators.
    """
    if isinstance(robot, RobotControl):
        robot = robot.actuators.names
    names = set(robot)
    found = []
    for preset, poses in PRESETS.items():
        needed = set().union(*(pose.targets for pose in poses))
        if needed <= names:
            found.append(preset)
    return sorted(found)


def start_sequence(
    control: RobotControl, poses: str | tuple[Pose, ...], loop: bool, delay: float, autoplay: bool
) -> PoseSequencer:
    """Move a robot through poses, or those of a preset; see `LiveLab.run_sequence`."""
    if isinstance(poses, str):
        if poses not in PRESETS:
            known = ", ".join(find_presets(control)) or "none"
            raise KeyError(f"There is no preset '{poses}'; for '{control.name}': {known}.")
        poses = PRESETS[poses]
    sequence = PoseSequencer(control, poses, loop=loop, delay=delay)
    if autoplay:
        sequence.play()
    return sequence
