"""Keyframes of the model on the page."""

from __future__ import annotations

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import PageContext
from manyworlds.lab.robots.keyframes import Root
from manyworlds.viewer.browser.widgets import relabel

_ROOTS: dict[str, Root] = {
    "unchanged": "keep",
    "initial pose": "placed",
    "keyframe pose": "authored",
}


class KeyframePart:
    """Sets the selected robot to a keyframe, or holds it there.

    Args:
        ctx: context of the page.
    """

    period = 0.25

    def __init__(self, ctx: PageContext) -> None:
        self._ctx = ctx
        gui = ctx.gui
        names = self._names()
        self.folder = gui.add_folder("Keyframes", visible=bool(names))
        with self.folder:
            self.choice = gui.add_dropdown("Keyframe", names or ("none",))
            self.root = gui.add_dropdown(
                "Root", tuple(_ROOTS), hint="Pose of a floating robot's root."
            )
            self.put = ctx.on_click(gui.add_button("Apply", hint="Pose the robot once."), self._put)
            self.hold = ctx.on_click(
                gui.add_button("Hold", hint="Keep its joints at the pose."), self._hold
            )

    def update(self, snapshot: Snapshot) -> None:
        """Show whether the robot is held."""
        held = self._ctx.lab.keyframes.is_holding(self._ctx.robot)
        label = "Stop holding" if held else "Hold"
        relabel(self.hold, label)
        names = self._names()
        if names and names != tuple(self.choice.options):
            self.choice.options = names
        if self.folder.visible != bool(names):
            self.folder.visible = bool(names)

    def renew(self) -> list[str]:
        """Keep the chosen keyframe; `update` lists those of the new world."""
        return []

    def _names(self) -> tuple[str, ...]:
        return tuple(self._ctx.lab.keyframes.names(self._ctx.robot)) if self._ctx.robot else ()

    def _put(self) -> None:
        root = _ROOTS[self.root.value]
        reply = self._ctx.verbs.apply_keyframe(
            robot=self._ctx.robot, keyframe_name=self.choice.value, root=root
        )
        self._ctx.note_ended_replay(reply["ended_replay"])

    def _hold(self) -> None:
        robot = self._ctx.robot
        if self._ctx.lab.keyframes.is_holding(robot):
            self._ctx.verbs.stop_hold(robot=robot)
        else:
            reply = self._ctx.verbs.hold_keyframe(robot=robot, keyframe_name=self.choice.value)
            self._ctx.note_ended_replay(reply["ended_replay"])
