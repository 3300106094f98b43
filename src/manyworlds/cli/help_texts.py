"""Texts of the help, without the line breaks of the source."""

from __future__ import annotations

import tyro


def join_source_lines() -> None:
    """Let tyro join the lines of docstrings.

    By default it keeps the line break before an indented line, which every line of a field's
    docstring but the first is. A tyro without this private function keeps these breaks.
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
