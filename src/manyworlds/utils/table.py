"""Tables for terminals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def render_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], width: int = 100
) -> str:
    """Render a table as plain text of at most `width` columns; numbers are right-aligned.

    Cells of None are numbers that are missing; they show as a hyphen.
    """
    from rich.console import Console  # slow to import, and few commands draw a table
    from rich.table import Table

    rows = list(rows)
    table = Table(title=title, title_justify="left", min_width=min(len(title), width))
    for i, name in enumerate(columns):
        numeric = bool(rows) and all(isinstance(row[i], int | float | None) for row in rows)
        table.add_column(name, justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*("-" if cell is None else str(cell) for cell in row))
    # Without markup: "[rad]" is a unit, not a style.
    console = Console(width=width, color_system=None, markup=False, emoji=False)
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().rstrip().splitlines())
