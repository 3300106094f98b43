"""Choices and limits of props and sampled height fields, which verbs describe, too."""

from __future__ import annotations

from typing import Literal

PropMode = Literal["dynamic", "static", "mocap"]
Primitive = Literal["sphere", "capsule", "cylinder", "ellipsoid", "box", "plane"]
PRIMITIVE_SIZES: dict[Primitive, int] = {
    "sphere": 1,
    "capsule": 2,
    "cylinder": 2,
    "ellipsoid": 3,
    "box": 3,
    "plane": 3,
}
"""Kinds of primitives, and the numbers of their sizes."""
RESOLUTIONS = (2, 512)
"""Lowest and highest number of samples of a height field along one side."""
BASE_THICKNESSES = (0.01, 1.0)
"""Lowest and highest depth of solid ground below the lowest sample [m]."""
