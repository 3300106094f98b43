"""A robot of a file, as an entity of a scene takes it."""

from __future__ import annotations

from pathlib import Path

import mujoco

from manyworlds.asset_zoo.legged import name_elements
from manyworlds.spec.edits import drop_options
from manyworlds.spec.load import load_spec


def robot_spec(file: Path, fixed_base: bool = False) -> mujoco.MjSpec:
    """Load a robot for a scene: without floor, lights, options and keyframes of its file.

    Bodies, joints, geoms and actuators without names get some, and a root without joints gets a
    free joint unless `fixed_base`; see `name_elements`.
    """
    spec, _ = load_spec(file)
    name_elements(spec, fixed_base)
    drop_options(spec)
    for key in list(spec.keys):
        spec.delete(key)
    spec.nkey = 0
    for actuator in spec.actuators:
        actuator.name = actuator.name or actuator.target
    return spec
