"""The names that the reference offers, read from its table of interfaces where it is at hand."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

SHARED = Path(
    os.environ.get("MANYWORLDS_SHARED", Path(__file__).resolve().parents[2].parent / "shared")
)


def shared_file(name: str) -> Path:
    """Find a file beside the checkout, or skip the test that asks for it."""
    path = SHARED / name
    if not path.is_file():
        pytest.skip(f"{path} is absent: point MANYWORLDS_SHARED at the folder that has it")
    return path


def public_names(text: str) -> set[str]:
    """List `module:name` of all exports and of all API tables."""
    names: set[str] = set()
    room = module = ""
    for line in text.splitlines():
        if header := re.match(r"##+ .*\(`(mjlab[\w.]*)`.*\)", line):
            room, module = header[1], ""
        elif line.startswith("#"):
            room = module = ""
        elif line.startswith("Exports: "):
            names |= {f"{room}:{name}" for name in re.findall(r"\w+", line[len("Exports: ") :])}
        elif header := re.match(r"\*\*`([\w.]+)`\*\*", line):
            module = header[1] if header[1].startswith("mjlab") else ""
        elif room.endswith(".dr") and re.match(r"- \*\*\w+\*\*: ", line):
            names |= {f"{room}:{name}" for name in re.findall(r"`([a-z]\w+)(?:\(| = )", line)}
        elif module:
            names |= {f"{module}:{name}" for name in _names_of_row(line)}
    return {name for name in names if ":_" not in name and not name.endswith(":T")}


def _names_of_row(line: str) -> list[str]:
    if row := re.match(r"- \*\*`(\w+)`\*\*", line):
        return [row[1]]
    if re.match(r"- (functions|constants): ", line):
        return re.findall(r"(?:: |· )`(\w+)(?=\(|:| =)", line)
    return []
