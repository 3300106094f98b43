"""Displays that windows can be opened on."""

from __future__ import annotations

import os
import sys


def has_display() -> bool:
    """Return True if a window can be opened here."""
    names = ("DISPLAY", "WAYLAND_DISPLAY")
    return not sys.platform.startswith("linux") or any(map(os.environ.get, names))
