"""Displays that windows can be opened on."""

from __future__ import annotations

import os
import sys
import warnings


def has_display() -> bool:
    """Return True if a window can be opened here."""
    names = ("DISPLAY", "WAYLAND_DISPLAY")
    return not sys.platform.startswith("linux") or any(map(os.environ.get, names))


def check_display(remedy: str) -> None:
    """Check that MuJoCo's window can be opened, because it hangs where it cannot.

    Args:
        remedy: end of the error's sentence: other ways to see the same.

    Raises:
        RuntimeError: there is no display, or this program cannot use it.
    """
    if not has_display():
        raise RuntimeError(f"There is no display for MuJoCo's window: {remedy}")
    import glfw

    with warnings.catch_warnings(record=True) as problems:
        warnings.simplefilter("always")
        opened = glfw.init()
    if not opened:
        reason = "GLFW does not start"
        if problems:
            reason = str(problems[-1].message)
        display = os.environ.get("DISPLAY", os.environ.get("WAYLAND_DISPLAY", ""))
        raise RuntimeError(
            f"MuJoCo's window cannot use the display '{display}' ({reason}): {remedy}"
        )
