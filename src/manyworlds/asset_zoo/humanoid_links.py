"""Model of the humanoid, see `manyworlds.asset_zoo.humanoid`; nothing here needs torch."""

from __future__ import annotations

from pathlib import Path

import mujoco

_FILE = Path(__file__).with_name("humanoid.xml")


def get_spec() -> mujoco.MjSpec:
    """Read the robot; with all joints at zero it is upright, legs straight, forearms forward."""
    return mujoco.MjSpec.from_string(_FILE.read_text(encoding="utf-8"))
