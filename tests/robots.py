"""Third-party robot models that are not part of the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def robot_file(name: str) -> Path:
    """Return the file of a robot such as `unitree_go1/go1.xml`; skip the test without it."""
    default = Path(__file__).resolve().parents[1] / ".." / "shared" / "robots"
    path = Path(os.environ.get("MANYWORLDS_ROBOTS", default)) / name
    if not path.is_file():
        pytest.skip(f"no {name} in {path.parent.parent}: set MANYWORLDS_ROBOTS to the folder")
    return path
