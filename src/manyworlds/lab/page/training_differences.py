"""Differences between the world and that of a policy's training, on the page."""

from __future__ import annotations

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import PageContext, PagePart
from manyworlds.viewer.browser.markup import note_html


class DifferencesPart(PagePart):
    """Lists differences from training, of the selected robot's policy or of the environment."""

    period = 0.5

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        self.folder = ctx.gui.add_folder("", expand_by_default=False, visible=False)
        with self.folder:
            self.text = ctx.gui.add_html("")

    def update(self, snapshot: Snapshot) -> None:
        """Show the differences, if there are any."""
        lab = self._ctx.lab
        robot = lab.facts.robots.get(self._ctx.robot)
        differences: list[str] = []
        notes = []
        if robot is not None and robot.differences:
            differences = robot.differences
            taken = "timestep and gains" if robot.adopts_gains else "timestep"
            notes.append(f"The world has taken over the {taken} of training.")
        elif lab.environment is not None:
            differences = lab.environment.differences
        self.folder.visible = bool(differences)
        if differences:
            self.folder.label = f"Differences from training: {len(differences)}"
            self.text.content = note_html("\n".join([*differences, *notes]))
