"""Saved states of the world on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import KeptPart, PageContext

if TYPE_CHECKING:
    import viser

_NO_STATES: tuple[str, ...] = ("none",)


class SavedStatePart(KeptPart):
    """Saves the state of the world, and restores saved ones."""

    period = 0.25

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        gui = ctx.gui
        with gui.add_folder("Saved states"):
            self.name = gui.add_text("Name", "", hint="Empty: a number.")
            self.save = ctx.add_button("Save", lambda: ctx.attempt_at(self.outcome, self._save))
            self.choice = gui.add_dropdown("Saved", _NO_STATES)
            self.restore = ctx.add_button("Restore", self._restore)
            self.restore.disabled = True
            self.drop = ctx.add_button("Delete", lambda: ctx.attempt_at(self.outcome, self._drop))
            self.drop.color = "red"
            self.drop.disabled = True
            self.outcome = gui.add_html("")
            self.download = gui.add_button("Download", disabled=True)
            self.download.on_click(lambda event: ctx.attempt(lambda: self._send(event.client)))
            self.upload = gui.add_upload_button("Import file", mime_type=".npz")
            self.upload.on_upload(lambda _: ctx.attempt_at(self.imported, self._import))
            self.imported = gui.add_html("")

    def update(self, snapshot: Snapshot) -> None:
        """Show the names of the saved states."""
        names = tuple(self._ctx.lab.facts.states) or _NO_STATES
        if tuple(self.choice.options) != names:
            self.choice.options = names
            self.choice.value = names[-1]
            for button in (self.restore, self.drop, self.download):
                button.disabled = names == _NO_STATES

    def _save(self) -> str:
        reply = self._ctx.verbs.capture_state(label=self.name.value.strip())
        self.name.value = ""
        return f"The state at {reply['state_time']:.3f} s is saved as '{reply['label']}'."

    def _drop(self) -> str:
        name = self.choice.value
        self._ctx.verbs.drop_state(label=name)
        return f"The state '{name}' was deleted."

    def _restore(self) -> None:
        name = self.choice.value
        reply = self._ctx.verbs.restore_state(label=name)
        self._ctx.note_ended_replay(reply["ended_replay"])
        if reply["converted"]:
            self._ctx.note = f"the state '{name}' was {reply['converted']}"

    def _send(self, client: viser.ClientHandle | None) -> None:
        assert client is not None  # only clients click
        name = self.choice.value
        content = self._ctx.verbs.export_state(label=name)["content"]
        client.send_file_download(f"{name}.npz", content, save_immediately=True)

    def _import(self) -> str:
        file = self.upload.value
        reply = self._ctx.verbs.import_state(content=file.content, name=file.name, convert=True)
        how = f", {reply['converted']}" if reply["converted"] else ""
        return f"'{file.name}' is imported as '{reply['label']}'{how}."
