"""HTML of both pages: status lines, notes, tables, cards and banners."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

ERROR_COLOR = "#c92a2a"
NOTE_COLOR = "#5c677d"
TRANSPORT = '<i class="lab-transport" hidden></i>'
"""HTML before a button, a row of buttons and a dropdown that are beside each other; see
`shell.css`."""
_LONGEST = 400


def status_html(
    rows: Iterable[tuple[str, str]],
    errors: Sequence[str] = (),
    *,
    notes: Sequence[str] = (),
    name_em: float | Sequence[float] = 4.0,
    note_lines: int = 0,
) -> str:
    """Return HTML for pairs of a name and a value, with errors and notes below them.

    Args:
        rows: names and values, as text.
        errors: red lines, cut where they are long.
        notes: lines below the errors, cut where they are long.
        name_em: least widths of the columns of names, which grow with longer names; one for
            each column of values beside another.
        note_lines: lines that are kept free for errors and notes while there are none, so that
            what is below them stays in its place.
    """
    widths = [name_em] if isinstance(name_em, float | int) else name_em
    columns = " ".join(f"minmax({width:g}em,max-content) 1fr" for width in widths)
    cells = "".join(
        f'<div style="opacity:.65">{html.escape(name)}</div><div>{html.escape(value)}</div>'
        for name, value in rows
    )
    lines = [_line(text, ERROR_COLOR) for text in errors]
    lines += [_line(text, NOTE_COLOR) for text in notes]
    below = ""
    if lines or note_lines:
        below = (
            f'<div style="margin-top:.4em;min-height:{1.45 * note_lines:g}em;line-height:1.45;'
            f'overflow-wrap:anywhere">{"".join(lines)}</div>'
        )
    return (
        '<div style="padding:.4em 1em .3em;font-size:.9em;font-variant-numeric:tabular-nums">'
        f'<div style="display:grid;grid-template-columns:{columns};gap:.15em .5em">'
        f"{cells}</div>{below}</div>"
    )


def note_html(text: str, *, error: bool = False) -> str:
    """Return HTML for lines of text; empty for none."""
    if not text:
        return ""
    color = NOTE_COLOR
    if error:
        color = ERROR_COLOR
    return (
        '<div style="padding:.1em 1em .4em;font-size:.85em;overflow-wrap:anywhere;'
        f"color:{color};font-variant-numeric:tabular-nums;"
        f'white-space:pre-line">{html.escape(text)}</div>'
    )


def differences_html(lines: Sequence[str]) -> str:
    """Return lines about marked inputs and the values that the model has; empty without any."""
    if not lines:
        return note_html("")
    return note_html("\n".join(["* differs from the model, which has:", *lines]))


def table_html(rows: Iterable[tuple[str, ...]]) -> str:
    """Return HTML for a table of numbers, which scrolls if it is long.

    Args:
        rows: name, unit, and values, as text.
    """
    lines = []
    for name, unit, *values in rows:
        cells = "".join(f'<td style="text-align:right">{html.escape(v)}</td>' for v in values)
        lines.append(
            f'<tr><td style="opacity:.65">{html.escape(name)}</td>{cells}'
            f'<td style="opacity:.65;padding-left:.5em">{html.escape(unit)}</td></tr>'
        )
    return (
        '<div style="max-height:15em;overflow:auto;padding:.2em .4em"><table style="width:100%;'
        'border-spacing:0;font-size:.8em;font-variant-numeric:tabular-nums">'
        f"{''.join(lines)}</table></div>"
    )


def error_card_html(title: str, text: str) -> str:
    """Return HTML for an error that prevents the page from working."""
    return (
        f'<div style="margin:.6em;padding:.7em .9em;border-left:4px solid {ERROR_COLOR};'
        'border-radius:4px;background:rgba(201,42,42,.08);font-size:.9em">'
        f'<div style="font-weight:600;margin-bottom:.4em">{html.escape(title)}</div>'
        '<div style="overflow-wrap:anywhere;font-family:ui-monospace,monospace">'
        f"{html.escape(text)}</div></div>"
    )


def banner_html(text: str, color: str, panel_px: int) -> str:
    """Return HTML for a word over the view.

    Args:
        text: the word.
        color: background, as CSS.
        panel_px: width of the panel beside the view [pixel].
    """
    return (
        '<div style="position:fixed;top:18px;z-index:50;'
        f"left:calc((100vw - var(--lab-panel, {panel_px}px)) / 2);"
        "transform:translateX(-50%);font:600 22px/1 system-ui,sans-serif;letter-spacing:.28em;"
        "pointer-events:none;padding:.5em .8em .5em 1.08em;border-radius:6px;color:#fff;"
        f'background:{color}">{html.escape(text)}</div>'
    )


def rec_html() -> str:
    """Return HTML for a sign in the corner of the view that says that the world is recorded."""
    return (
        '<div role="status" style="position:fixed;top:18px;'
        "right:calc(var(--lab-panel, 0px) + 18px);"
        "z-index:50;pointer-events:none;padding:.35em .7em;border-radius:6px;color:#fff;"
        f'background:{ERROR_COLOR};font:600 13px/1.2 system-ui,sans-serif">\u25cf REC</div>'
    )


def script_html(script: str) -> str:
    """Return invisible HTML that runs a script in a browser as soon as it is made.

    Args:
        script: an expression that is true, and has its effect once however often it is evaluated.
    """
    # Scripts in viser's HTML do not run, but event handlers do. That of an SVG in another one runs
    # as soon as the element is made; those of images run seconds later where a page is large.
    return f'<svg style="display:none"><svg onload="{html.escape(script)}"></svg></svg>'


def _line(text: str, color: str) -> str:
    return f'<div style="color:{color}">{html.escape(text[:_LONGEST])}</div>'
