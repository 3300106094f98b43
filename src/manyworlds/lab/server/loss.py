"""Order in a world after its driver on the network is lost."""

from __future__ import annotations

from collections.abc import Iterable

from manyworlds.lab.face import LabFace
from manyworlds.lab.robots.control import NET

_STILL = [0.0, 0.0, 0.0]


def end_twist(face: LabFace, robot: str) -> None:
    """Set the velocity command of a robot to zero.

    Raises:
        VerbError: the lab refuses.
    """
    face.verbs.set_twist(robot=robot, linear=_STILL, angular=_STILL)


def leave_in_order(face: LabFace, mode_before: str, zero: bool, held: Iterable[str] = ()) -> None:
    """Restore the mode, end held velocities, and perhaps stop the robots of the network.

    Args:
        face: the world.
        mode_before: mode before the driver changed it; empty if it did not.
        zero: whether the targets of the network's robots become zero.
        held: robots whose velocity was held by a key or stick.

    Raises:
        VerbError: the lab refuses.
    """
    if mode_before:
        face.verbs.set_mode(mode=mode_before)  # type: ignore[arg-type]  # a mode of the lab
    for robot in held:
        end_twist(face, robot)
    if not zero:
        return
    for name, robot in face.verbs.read_status()["robots"].items():
        if robot["owner"] == NET:
            targets = dict.fromkeys(robot["targets"], 0.0)
            face.verbs.set_targets(robot=name, targets=targets, owner=NET)
