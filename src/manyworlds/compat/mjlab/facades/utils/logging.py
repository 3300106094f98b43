"""Messages on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.style import Style

__all__ = ["print_info"]


def print_info(message: str, color: str = "green") -> None:
    """Print a message in a color, and without color where the output is no terminal.

    Raises:
        rich.errors.StyleSyntaxError: there is no such color.
    """
    Console().print(message, style=Style.parse(color), markup=False, highlight=False)
