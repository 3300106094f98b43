"""Values by name, and what went wrong, as HTML for the panel of a page."""

from __future__ import annotations

import html
from collections.abc import Iterable

_RED, _GREY = "#c92a2a", "#5c677d"


def status_html(
    rows: Iterable[tuple[str, str]],
    notes: Iterable[str] = (),
    *,
    error: bool = True,
    name_em: float = 4.0,
) -> str:
    """Lay out a table and lines below it.

    Args:
        rows: names, which are HTML, and values, which are text.
        notes: lines of text, cut where they are long.
        error: whether the lines are red.
        name_em: width of the column of names.
    """
    cells = "".join(
        f'<div style="opacity:.65">{name}</div><div>{html.escape(value)}</div>'
        for name, value in rows
    )
    lines = "".join(f"<div>{html.escape(note[:400])}</div>" for note in notes)
    below = (
        f'<div style="margin-top:.5em;color:{_RED if error else _GREY};overflow-wrap:anywhere">'
        f"{lines}</div>"
    )
    return (
        '<div style="padding:.25em 1em .5em;font-size:.9em;font-variant-numeric:tabular-nums">'
        f'<div style="display:grid;grid-template-columns:{name_em:g}em 1fr;gap:.15em .5em">'
        f"{cells}</div>{below if lines else ''}</div>"
    )
