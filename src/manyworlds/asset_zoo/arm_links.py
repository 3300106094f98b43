"""Model of the arm, see `manyworlds.asset_zoo.arm`; nothing here needs torch."""

from __future__ import annotations

from pathlib import Path

import mujoco

_FILE = Path(__file__).with_name("arm.xml")


def get_spec() -> mujoco.MjSpec:
    """Read the arm; with all joints at zero it is folded back, gripper forward, fingers closed."""
    return mujoco.MjSpec.from_string(_FILE.read_text(encoding="utf-8"))


def carried(spec: mujoco.MjSpec) -> mujoco.MjSpec:
    """Enable gravity compensation of all bodies, as the manufacturer's controller does."""
    for body in spec.bodies[1:]:
        body.gravcomp = 1.0
    return spec
