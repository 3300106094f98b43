"""Source code of values, for the programs that `manyworlds new-task --robot` writes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyworlds.asset_zoo.legged import JointDrive

_SPECIAL = re.compile(r"[.^$*+?{}\[\]\\|()]")


def pattern(name: str) -> str:
    """Return a regular expression that matches this name alone."""
    return _SPECIAL.sub(r"\\\g<0>", name)


def numbers(values: Mapping[str, float]) -> str:
    """Return numbers by pattern of a name as source, in lines of one number each."""
    return "\n".join(f"    {json.dumps(pattern(n))}: {value!r}," for n, value in values.items())


def drive_constant(drives: Mapping[str, JointDrive]) -> str:
    """Return the constant of a program with the drives of joints, by pattern of their names."""
    return f"""\
DRIVES = {{  # default [rad], effort limit [N m], stiffness, damping, armature
{drives_source({pattern(name): drive for name, drive in drives.items()}, 4)}
}}"""


def drive_constants(drives: Mapping[str, JointDrive]) -> str:
    """Return the constants of a program with the drives of joints and the scales of actions."""
    return f"""\
{drive_constant(drives)}
SCALES = {{name: 0.25 * drive.effort_limit / drive.stiffness for name, drive in DRIVES.items()}}
\"\"\"Change of a joint's target for an action of 1 [rad].\"\"\""""


def drives_source(drives: Mapping[str, JointDrive], indent: int) -> str:
    """Return drives of joints as source, in lines of one joint each."""
    return "\n".join(
        f"{' ' * indent}{json.dumps(joint)}: JointDrive{astuple(drive)},"
        for joint, drive in drives.items()
    )


def path_source(file: Path, folder: Path) -> str:
    """Return a path as source for a module in a folder, which may move with the files below it."""
    plain = Path(os.path.abspath(file))  # keeps symbolic links
    home = folder.absolute()
    if plain.is_relative_to(home):
        return f"Path(__file__).parent / {json.dumps(plain.relative_to(home).as_posix())}"
    return f"Path({json.dumps(str(file.resolve()))})"


def names_source(names: Sequence[str], indent: int = 4) -> str:
    """Return a tuple of names as source, in lines of one name each."""
    if not names:
        return "()"
    lines = "".join(f"\n{' ' * (indent + 4)}{json.dumps(name)}," for name in names)
    return f"({lines}\n{' ' * indent})"
