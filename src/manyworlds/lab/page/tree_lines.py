"""Lines of trees on the page, which select what they name when they are clicked."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Any

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_boxes import BoxPart
from manyworlds.lab.page.page_context import PageContext


class TreeClicksPart(BoxPart):
    """Selects the bodies whose lines are clicked in browsers.

    Args:
        ctx: context of the page.
        address: address of the page's own WebSocket, see `DrivePart`.
    """

    period = 60.0

    def __init__(self, ctx: PageContext, address: str) -> None:
        super().__init__(ctx)
        self._add_box("tree_box", address)
        ctx.answers["select_body"] = self._select

    def update(self, snapshot: Snapshot) -> None:
        """Do nothing: clicks come by themselves."""

    def _select(self, browser: str, message: dict[str, Any]) -> dict[str, object]:
        """Select a body by its id, if the world still has one.

        Args:
            browser: name of the browser.
            message: `name`, the id.
        """
        body = int(message["name"])
        if not 0 < body < self._ctx.lab.model.nbody:
            raise ValueError(f"There is no body {body}: the world was rebuilt.")
        self._ctx.select("body", body)
        return {}


def tree_line(
    name: str, note: str, *, depth: int, selected: bool, ask: str, argument: object
) -> str:
    """Return a line of a tree as HTML.

    Args:
        name: text of the line.
        note: further text, in a lighter color.
        depth: number of the lines above it in which it is.
        selected: whether it is marked.
        ask: kind of the message that a click sends, see `PageContext.answers`; empty for none.
        argument: `name` of that message.
    """
    weight = "700;color:#1971c2" if selected else "400"
    click = f'data-lab-ask="{ask}" data-lab-name="{html.escape(str(argument))}" ' if ask else ""
    pointer = ";cursor:pointer" if ask else ""
    return (
        f'<div {click}style="padding-left:{depth}em;font-weight:{weight}{pointer}">'
        f'{html.escape(name)}<span style="opacity:.5"> {html.escape(note)}</span></div>'
    )


def tree_html(lines: Iterable[str], empty: str = "") -> str:
    """Return lines as a tree that scrolls.

    Args:
        lines: the lines.
        empty: text if there are none.
    """
    return (
        '<div style="max-height:22em;overflow:auto;padding:.2em 1em;font-size:.85em">'
        f"{''.join(lines) or empty}</div>"
    )
