"""Differences between the alias and the reference's public surface, where that is at hand."""

from __future__ import annotations

import functools
import os
import subprocess
import sys

from tests.compat.names import shared_file


def differences() -> dict[str, list[str]]:
    """Return the differences by kind, such as 'member', or skip the test that asks for them."""
    return _differences(str(shared_file("peer/check_surface.py")))


@functools.cache
def _differences(checker: str) -> dict[str, list[str]]:
    result = subprocess.run(
        [sys.executable, checker, "--list", "all"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, list[str]] = {}
    kind = ""
    for line in result.stdout.splitlines()[1:]:
        if line.startswith("  "):
            found[kind].append(line.strip())
        elif line:
            kind = line.split()[0]
            found[kind] = []
    return found
