"""Observations and actions of the policy, and how near the end of the episode is."""

from __future__ import annotations

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import PageContext, PagePart
from manyworlds.viewer.browser.markup import status_html, table_html

_SHOWN = 12  # values of a term


class TaskDetailsPart(PagePart):
    """Observations and actions by term, value, and nearness of terminations."""

    period = 0.25

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        gui = ctx.gui
        with gui.add_folder("Policy", expand_by_default=False):
            self.box = gui.add_checkbox(
                "Show observations and actions", False, hint="Read from the lab while shown."
            )
            self.facts = gui.add_html("")
            self.table = gui.add_html("")

    def update(self, snapshot: Snapshot) -> None:
        """Show the last control step."""
        if not self.box.value:
            self.facts.content = self.table.content = ""
            return
        found = self._ctx.verbs.read_task_details()
        value = found["value"]
        rows = [("Value", "not known" if value is None else f"{value:.3f}")]
        rows += [
            (f"To {name}", f"{100.0 * share:.0f} %") for name, share in found["nearness"].items()
        ]
        self.facts.content = status_html(rows, name_em=7.0)
        lines = []
        for name, values in found["action"].items():
            spread = found["deviation"].get(name)
            shown = [f"{number:.2f}" for number in values]
            if spread is not None:
                shown = [f"{text} ± {s:.2f}" for text, s in zip(shown, spread, strict=True)]
            lines.append((f"action {name}", "", _joined(shown)))
        for name, values in found["observations"].items():
            lines.append((name, "", _joined([f"{number:.2f}" for number in values])))
        self.table.content = table_html(lines)


def _joined(shown: list[str]) -> str:
    more = f" ... {len(shown)} values" if len(shown) > _SHOWN else ""
    return ", ".join(shown[:_SHOWN]) + more
