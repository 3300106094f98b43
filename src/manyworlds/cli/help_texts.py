"""Texts of the help, without the line breaks of the source."""

from __future__ import annotations

import tyro


def join_source_lines() -> None:
    """Let tyro join the lines of docstrings.

    It starts a new line before each line that begins with no letter, such as an indented one, which
    all lines of a field's docstring are except the first. Where tyro has no such function any more,
    its help keeps these lines.
    """
    strings = getattr(tyro, "_strings", None)
    if strings is not None and hasattr(strings, "remove_single_line_breaks"):
        strings.remove_single_line_breaks = joined


def joined(text: str) -> str:
    """Return a text with one line for each paragraph and each item of a list."""
    lines: list[str] = []
    for line in map(str.strip, text.strip().splitlines()):
        if line and lines and lines[-1] and not line.startswith("- "):
            lines[-1] += f" {line}"
        else:
            lines.append(line)
    return "\n".join(lines)
