"""Model of the quadruped, see `manyworlds.asset_zoo.quadruped`; nothing here needs torch."""

from __future__ import annotations

from pathlib import Path

import mujoco

_FILE = Path(__file__).with_name("quadruped.xml")


def get_spec() -> mujoco.MjSpec:
    """Read the robot; with all joints at zero the legs are straight down."""
    return mujoco.MjSpec.from_string(_FILE.read_text(encoding="utf-8"))
