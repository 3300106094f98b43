"""Order in a world after its driver on the network is lost."""

from __future__ import annotations

from typing import Any

from manyworlds.lab.control import NET
from manyworlds.lab.face import LabFace


def leave_in_order(face: LabFace, mode_before: str, zero: bool) -> None:
    """Restore the mode, and perhaps stop the robots of the network.

    Args:
        face: the world.
        mode_before: mode before the driver changed it; empty if it did not.
        zero: whether the targets of the network's robots become zero.

    Raises:
        VerbError: the lab refuses.
    """
    if mode_before:
        face.call("set_mode", mode=mode_before)
    robots: Any = face.call("read_status")["robots"] if zero else {}
    for name, robot in robots.items():
        if robot["owner"] == NET:
            targets = dict.fromkeys(robot["targets"], 0.0)
            face.call("set_targets", robot=name, targets=targets, owner=NET)
