"""Keyframes of the model on the page."""

from __future__ import annotations

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import PageContext, PagePart
from manyworlds.lab.robots.keyframes import Root
from manyworlds.viewer.browser.widgets import relabel

_ROOTS: dict[str, Root] = {
    "unchanged": "keep",
    "initial pose": "placed",
    "keyframe pose": "authored",
}


class KeyframePart(PagePart):
    """Sets the selected robot to a keyframe, or holds it there."""

    period = 0.25

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        self._known: dict[str, tuple[str, ...]] = {}
        """Names of the keyframes by robot."""
        gui = ctx.gui
        names = self._names()
        self.folder = gui.add_folder("Keyframes", visible=bool(names))
        with self.folder:
            self.choice = gui.add_dropdown("Keyframe", names or ("none",))
            self.root = gui.add_dropdown(
                "Root", tuple(_ROOTS), hint="Pose of a floating robot's root."
            )
            self.put = ctx.add_button("Apply", self._put, hint="Pose the robot once.")
            self.hold = ctx.add_button("Hold", self._hold, hint="Keep its joints at the pose.")

    def update(self, snapshot: Snapshot) -> None:
        """Show whether the robot is held."""
        label = "Stop holding" if self._ctx.robot in self._ctx.lab.facts.held else "Hold"
        relabel(self.hold, label)
        names = self._names()
        if names and names != tuple(self.choice.options):
            self.choice.options = names
        self.folder.visible = bool(names)

    def renew(self) -> list[str]:
        """Keep the chosen keyframe; `update` lists those of the new world."""
        self._known.clear()
        return []

    def _names(self) -> tuple[str, ...]:
        """Return the keyframes of the selected robot, which change only with a rebuild."""
        robot = self._ctx.robot
        if not robot:
            return ()
        if robot not in self._known:
            self._known[robot] = tuple(self._ctx.verbs.list_keyframes(robot=robot)["keyframes"])
        return self._known[robot]

    def _put(self) -> None:
        root = _ROOTS[self.root.value]
        reply = self._ctx.verbs.apply_keyframe(
            robot=self._ctx.robot, keyframe_name=self.choice.value, root=root
        )
        self._ctx.note_ended_replay(reply["ended_replay"])

    def _hold(self) -> None:
        robot = self._ctx.robot
        if robot in self._ctx.lab.facts.held:
            self._ctx.verbs.stop_hold(robot=robot)
        else:
            reply = self._ctx.verbs.hold_keyframe(robot=robot, keyframe_name=self.choice.value)
            self._ctx.note_ended_replay(reply["ended_replay"])
