"""Card of a world of a batch on the page."""

from __future__ import annotations

import html
from typing import Any

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import PageContext, PagePart
from manyworlds.viewer.browser.markup import status_html


class WorldCardPart(PagePart):
    """Variant, terrain cell and randomized values of the world; hidden outside of batches."""

    period = 0.5

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        self._version = -1
        self.folder = ctx.gui.add_folder("World of the batch", visible=False)
        with self.folder:
            self.facts = ctx.gui.add_html("")
            with ctx.gui.add_folder("Randomized", expand_by_default=False):
                self.table = ctx.gui.add_html("")

    def renew(self) -> list[str]:
        """Show the new world."""
        self._version = -1
        return []

    def update(self, snapshot: Snapshot) -> None:
        """Show the card, again after each change of the model."""
        if snapshot.model_version == self._version:
            return
        self._version = snapshot.model_version
        card = self._ctx.verbs.describe_world()["batch"]
        self.folder.visible = bool(card)
        if not card:
            return
        rows = [("World", f"{card['env_id']} of {card['num_envs']}")]
        rows += [(f"Variant of {name}", variant) for name, variant in card["variants"].items()]
        if terrain := card["terrain"]:
            cell = f"{terrain['type']}, level {terrain['level']}, column {terrain['column']}"
            rows.append(("Terrain", f"{cell}, difficulty {terrain['difficulty']:.2g}"))
        rows.append(("Randomized", f"{len(card['randomized'])} values of the model"))
        self.facts.content = status_html(rows, name_em=7.0)
        self.table.content = _card_html(card)


def _card_html(card: dict[str, Any]) -> str:
    """Return a table of what was randomized: value, nominal value, and range."""
    lines = ["<tr><th>field</th><th>value</th><th>nominal</th><th>range</th></tr>"]
    for row in card["randomized"]:
        places = [i for i, low in enumerate(row["low"] or []) if low is not None]
        for i in places or range(len(row["value"])):
            column = f"[{i}]" if len(row["value"]) > 1 else ""
            bounds = row["draw"]
            if row["low"]:
                bounds = f"{row['low'][i]:.4g} to {row['high'][i]:.4g}"
            cells = (
                f"{row['field']}{column} of {row['element']}",
                f"{row['value'][i]:.4g}",
                f"{row['nominal'][i]:.4g}",
                bounds,
            )
            hint = html.escape(f"{row['event']} ({row['mode']}): {row['draw']}", quote=True)
            texts = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
            lines.append(f'<tr title="{hint}">{texts}</tr>')
    for other in card["others"]:
        text = html.escape(f"{other['event']} ({other['mode']}): {other['draw']}")
        lines.append(f'<tr><td colspan="4">{text}</td></tr>')
    return (
        '<div style="max-height:22em;overflow:auto;padding:.2em 1em;font-size:.8em;'
        f'overflow-wrap:anywhere"><table>{"".join(lines)}</table></div>'
    )
