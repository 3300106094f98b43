"""Differences between the alias and the reference's public surface, where that is at hand."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections import defaultdict

from tests.compat.names import shared_file


def differences(kind: str) -> set[str]:
    """Return the differences of a kind, such as 'member', or skip the test that asks for them."""
    return _differences(str(shared_file("peer/check_surface.py")))[kind]


@functools.cache
def _differences(checker: str) -> dict[str, set[str]]:
    result = subprocess.run(
        [sys.executable, checker, "--list", "all"], capture_output=True, text=True, check=True
    )
    found: dict[str, set[str]] = defaultdict(set)
    kind = ""
    for line in result.stdout.splitlines()[1:]:
        if line.startswith("  "):
            found[kind].add(line.strip())
        elif line:
            kind = line.split()[0]
    return found
