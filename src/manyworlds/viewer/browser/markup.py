"""Values by name, and what went wrong, as HTML for the panel of a page."""

from __future__ import annotations

import html
from collections.abc import Iterable


def status_html(rows: Iterable[tuple[str, str]], error: str = "", *, name_em: float = 4.0) -> str:
    """Lay out a table, and an error below it.

    Args:
        rows: names, which are HTML, and values, which are text.
        error: text, cut where it is long; empty for none.
        name_em: width of the column of names.
    """
    cells = "".join(
        f'<div style="opacity:.65">{name}</div><div>{html.escape(value)}</div>'
        for name, value in rows
    )
    if error:
        error = (
            '<div style="margin-top:.5em;color:#c92a2a;overflow-wrap:anywhere">'
            f"{html.escape(error[:400])}</div>"
        )
    return (
        '<div style="padding:.25em 1em .5em;font-size:.9em;font-variant-numeric:tabular-nums">'
        f'<div style="display:grid;grid-template-columns:{name_em:g}em 1fr;gap:.15em .5em">'
        f"{cells}</div>{error}</div>"
    )
