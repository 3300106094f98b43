"""Cell of generated terrain on which the world stands."""

from __future__ import annotations

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import PageContext, PagePart
from manyworlds.lab.page.shown_lab import ShownTask
from manyworlds.viewer.browser.markup import note_html


class TerrainCellPart(PagePart):
    """Moves the world to another cell of generated terrain.

    Args:
        ctx: context of the page.
        task: task on generated terrain.
    """

    period = 0.5

    def __init__(self, ctx: PageContext, task: ShownTask) -> None:
        super().__init__(ctx)
        self._task = task
        gui = ctx.gui
        cells = task.terrain_cells
        cell = task.terrain_cell
        with gui.add_folder("Terrain", expand_by_default=False):
            self.facts = gui.add_html("")
            self.level = gui.add_number(
                "Level", cell["level"], min=0, max=cells["levels"] - 1, step=1, hint="Difficulty."
            )
            self.column = gui.add_number(
                "Column", cell["column"], min=0, max=cells["columns"] - 1, step=1
            )
            self.move = ctx.add_button(
                "Move there",
                lambda: ctx.verbs.set_terrain_cell(
                    level=int(self.level.value),
                    column=int(self.column.value),
                ),
                hint="The robot and all free bodies.",
            )

    def update(self, snapshot: Snapshot) -> None:
        """Show the cell, which also changes when episodes begin."""
        cell = self._task.terrain_cell
        self.facts.content = note_html(f"at level {cell['level']}, column {cell['column']}")
