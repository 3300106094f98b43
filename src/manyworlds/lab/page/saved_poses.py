"""Keyframes of the model, and states that were saved."""

from __future__ import annotations

from typing import Any

from manyworlds.lab.keyframes import Root
from manyworlds.lab.page.page_context import PageContext
from manyworlds.lab.snapshot import Snapshot

_ROOTS: dict[str, Root] = {
    "where it is": "keep",
    "where it begins": "placed",
    "as the keyframe says": "authored",
}


class KeyframePart:
    """Puts the selected robot into a keyframe, or holds it there.

    Args:
        ctx: of the page.
    """

    period = 0.25

    def __init__(self, ctx: PageContext) -> None:
        self._ctx = ctx
        gui = ctx.gui
        names = self._names()
        with gui.add_folder("Keyframes", visible=bool(names)):
            self.choice = gui.add_dropdown("Keyframe", names or ("none",))
            self.root = gui.add_dropdown(
                "Root", tuple(_ROOTS), hint="Where a robot goes that is not fixed."
            )
            self.put = ctx.on_click(gui.add_button("Go there"), self._put)
            self.hold = ctx.on_click(gui.add_button("Hold"), self._hold)

    def update(self, snapshot: Snapshot) -> None:
        """Show whether the robot is held."""
        held = self._ctx.lab.keyframes.is_holding(self._ctx.robot)
        label = "Stop holding" if held else "Hold"
        if self.hold.label != label:
            self.hold.label = label
        names = self._names()
        if names and names != tuple(self.choice.options):
            self.choice.options = names

    def _names(self) -> tuple[str, ...]:
        return tuple(self._ctx.lab.keyframes.names(self._ctx.robot)) if self._ctx.robot else ()

    def _put(self) -> None:
        root = _ROOTS[self.root.value]
        self._ctx.lab.keyframes.reset(self._ctx.robot, self.choice.value, root)

    def _hold(self) -> None:
        frames, robot = self._ctx.lab.keyframes, self._ctx.robot
        if frames.is_holding(robot):
            frames.stop_hold(robot)
        else:
            frames.hold(robot, self.choice.value)


class SavedStatePart:
    """Saves the state, and returns to saved ones.

    Args:
        ctx: of the page.
    """

    period = 0.25

    def __init__(self, ctx: PageContext) -> None:
        self._ctx = ctx
        gui = ctx.gui
        with gui.add_folder("Snapshots"):
            self.name = gui.add_text("Name", "", hint="Empty: a number.")
            self.save = ctx.on_click(gui.add_button("Save"), self._save)
            self.choice: Any = gui.add_dropdown("Saved", ("none",))
            self.restore = ctx.on_click(gui.add_button("Restore", disabled=True), self._restore)
            self.download = gui.add_button("Download", disabled=True)
            self.download.on_click(lambda event: ctx.attempt(lambda: self._send(event.client)))
            self.upload = gui.add_upload_button("Import file", mime_type=".npz")
            self.upload.on_upload(lambda _: ctx.attempt(self._import))

    def update(self, snapshot: Snapshot) -> None:
        """Show which states there are."""
        names = tuple(self._ctx.lab.states.names) or ("none",)
        if tuple(self.choice.options) != names:
            self.choice.options = names
            self.choice.value = names[-1]
            self.restore.disabled = self.download.disabled = names == ("none",)

    def _save(self) -> None:
        self._ctx.lab.states.save(self.name.value.strip())
        self.name.value = ""

    def _restore(self) -> None:
        self._ctx.lab.states.restore(self.choice.value)

    def _send(self, client: Any) -> None:
        name = self.choice.value
        content = self._ctx.lab.states.pack(name)
        client.send_file_download(f"{name}.npz", content, save_immediately=True)

    def _import(self) -> None:
        file = self.upload.value
        self._ctx.lab.states.unpack(file.content, file.name)
