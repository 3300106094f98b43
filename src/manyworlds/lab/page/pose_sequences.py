"""Pose sequences of the presets on the page."""

from __future__ import annotations

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import PageContext, PagePart
from manyworlds.lab.robots.presets import find_presets
from manyworlds.lab.robots.sequence import SEQUENCE
from manyworlds.viewer.browser.widgets import relabel


class SequencePart(PagePart):
    """Moves the selected robot through the poses of a preset, if it has any."""

    period = 0.25

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        self._shown: str | None = ctx.robot
        names = self._names()
        self.folder = ctx.gui.add_folder("Sequences", visible=bool(names))
        with self.folder:
            self.choice = ctx.gui.add_dropdown("Sequence", names or ("none",))
            self.start = ctx.add_button("Start", self._toggle)

    def update(self, snapshot: Snapshot) -> None:
        """Show the presets of the selected robot, and the one that runs."""
        if self._ctx.robot != self._shown:
            self._shown = self._ctx.robot
            names = self._names()
            self.folder.visible = bool(names)
            self.choice.options = names or ("none",)
        relabel(self.start, "Stop" if self._is_playing() else "Start")

    def renew(self) -> list[str]:
        """Keep the chosen sequence; `update` lists those of the new world."""
        self._shown = None
        return []

    def _toggle(self) -> None:
        robot = self._ctx.robot
        if self._is_playing():
            self._ctx.verbs.stop_sequence(robot=robot)
        else:
            self._ctx.verbs.play_sequence(robot=robot, sequence=self.choice.value)

    def _is_playing(self) -> bool:
        """Return True while a sequence controls the selected robot."""
        robot = self._ctx.lab.facts.robots.get(self._ctx.robot)
        return robot is not None and robot.owner == SEQUENCE

    def _names(self) -> tuple[str, ...]:
        robot = self._ctx.lab.controls.get(self._ctx.robot)
        return () if robot is None else tuple(find_presets(robot.actuators.names))
