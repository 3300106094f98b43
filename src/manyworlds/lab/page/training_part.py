"""World of a running training on the page: go back, compare futures, send something back."""

from __future__ import annotations

import base64
import html
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import PageContext, PagePart
from manyworlds.lab.page.verb_form import VerbForm
from manyworlds.viewer.browser.markup import note_html, status_html

if TYPE_CHECKING:
    import viser

    from manyworlds.lab.verb_methods import SendEditReply

_PRESENT = "present episode"
_LAST_PUSH = "the last push"
_LARGEST_FILM = 2**23


class TrainingPart(PagePart):
    """Moments that the training remembers, futures, and buttons that send something back."""

    period = 0.5

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        self._episodes: dict[str, dict[str, Any]] = {}
        self._comparison: threading.Thread | None = None
        gui = ctx.gui
        self.facts = gui.add_html("")
        with gui.add_folder("Go back", expand_by_default=False):
            self._add_past()
        with gui.add_folder("Push", expand_by_default=False):
            self._add_push()
        with gui.add_folder("Two futures", expand_by_default=False):
            self._add_futures()
        with gui.add_folder("Send to the training", expand_by_default=False):
            self._add_sending()

    def _add_past(self) -> None:
        ctx = self._ctx
        gui = self._ctx.gui
        self.episode: Any = gui.add_dropdown("Episode", (_PRESENT,))
        self.past = VerbForm(ctx, "rewind_training")
        self.past.add("seconds", "Before its end", 5.0)
        self.past.add("follow", "Repeat what happened")
        self.back = ctx.add_button("Go back", self._go_back)
        self.refresh = ctx.add_button("Read the episodes", self._read_episodes)

    def _add_push(self) -> None:
        ctx = self._ctx
        self.pushed = VerbForm(ctx, "push_training")
        self.pushed.add("force", value=(0.0, 100.0, 0.0))
        self.pushed.add("duration_s", "Duration", 0.2)
        self.push = ctx.add_button("Push the selected body", self._push, hint="Kept, to be sent.")

    def _add_futures(self) -> None:
        ctx = self._ctx
        gui = self._ctx.gui
        self.second: Any = gui.add_dropdown("The second one has", (_LAST_PUSH,))
        self.future = VerbForm(ctx, "compare_futures")
        self.length = self.future.add("seconds", "Length")
        self.compare = ctx.add_button("Compare", self._compare)
        self.result = gui.add_html("")
        self.film = gui.add_html("")

    def _add_sending(self) -> None:
        ctx = self._ctx
        gui = self._ctx.gui
        start = VerbForm(ctx, "send_start_state")
        start.add("share", "Share of episodes")
        verbs = ctx.verbs
        self.start_state = self._add_sender(
            "This moment as a start state", lambda: verbs.send_start_state(**start.values())
        )
        self.name = gui.add_text("Name", "sent_push", hint="Of the disturbance, or of the case.")
        self.disturbance = self._add_sender(
            "The last push as a disturbance",
            lambda: verbs.send_disturbance(
                name=self.name.value, scale=[0.3, 1.0], any_direction=True
            ),
            hint="Any direction, 0.3 to 1 times.",
        )
        self.case = self._add_sender(
            "The last push as a test",
            lambda: verbs.send_case(name=self.name.value, with_push=True),
        )
        self.moment_case = self._add_sender(
            "This moment as a test", lambda: verbs.send_case(name=self.name.value)
        )
        self.changes = gui.add_html("")
        self.randomization = self._add_sender(
            "The changed fields as randomization", lambda: verbs.send_randomization()
        )
        self.path = gui.add_text("Path of a value", "rewards.", hint="As in the configuration.")
        self.value = gui.add_text("Value", "", hint="As in JSON: 2.0, [0, 1], true ...")
        self.set_value = self._add_sender("Set the value", self._set_value)
        self.outcomes = gui.add_html("")

    def update(self, snapshot: Snapshot) -> None:
        """Show the training, and what has become of what was sent."""
        found = self._ctx.verbs.read_training()
        training = found["training"]
        rows = [
            ("Training", Path(training["run"]).name),
            ("World", f"{training['env_id']}, after {training['step']} control steps"),
            ("Policy", f"of iteration {training['iteration']}"),
            ("Last push", training["pushed"] or "none"),
        ]
        self.facts.content = status_html(rows, name_em=5.0)
        options = (_LAST_PUSH, *found["checkpoints"][::-1])
        if tuple(self.second.options) != options:
            self.second.options = options
        self.changes.content = note_html("\n".join(found["changes"]) or "No field was changed.")
        lines = [f"{each['edit']}: {each['outcome']}" for each in found["edits"]]
        self.outcomes.content = note_html("\n".join(lines[::-1]))

    def _read_episodes(self) -> None:
        found = self._ctx.verbs.read_worst_episodes()["episodes"]
        self._episodes = {end["text"]: end for end in found[::-1]}
        self.episode.options = (_PRESENT, *self._episodes)
        self._ctx.note = f"{len(found)} episodes are remembered"

    def _go_back(self) -> None:
        fields = self.past.values()
        end = self._episodes.get(self.episode.value)
        if end is not None:
            fields |= {"env_id": end["env_id"], "end": end["step"]}
        self._ctx.verbs.rewind_training(**fields)

    def _push(self) -> None:
        ctx = self._ctx
        if not ctx.body:
            raise ValueError("No body is selected: click one, or choose it in the tab World.")
        ctx.verbs.push_training(body=ctx.view.name_of(ctx.body), **self.pushed.values())

    def _compare(self) -> None:
        """Simulate and film two futures beside the page, which stays usable."""
        if self._comparison is not None and self._comparison.is_alive():
            raise RuntimeError("Two futures are being simulated: wait for them.")
        chosen = self.second.value
        given = self.future.values()
        checkpoint = "" if chosen == _LAST_PUSH else chosen
        self.result.content = note_html("simulating and filming ...")

        def work() -> None:
            def made() -> str:
                found = self._ctx.verbs.compare_futures(checkpoint=checkpoint, **given)
                self.film.content = _futures_html(found["table"], Path(found["film"]))
                return found["film"]

            self._ctx.attempt_at(self.result, made)

        self._comparison = threading.Thread(target=work, name="manyworlds-futures", daemon=True)
        self._comparison.start()

    def _set_value(self) -> SendEditReply:
        text = self.value.value.strip()
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        return self._ctx.verbs.send_value(path=self.path.value.strip(), value=value)

    def _add_sender(
        self, label: str, send: Callable[[], SendEditReply], hint: str | None = None
    ) -> viser.GuiButtonHandle:
        """Add a button that sends something to the training, and notes what it sent."""

        def act() -> None:
            self._ctx.note = f"sent: {'; '.join(send()['edits'])}"

        return self._ctx.add_button(label, act, hint)


def _futures_html(table: str, film: Path) -> str:
    """Return a table and a film as HTML; a film that is large is left out."""
    text = f'<pre style="font-size:.7em;overflow:auto;padding:0 1em">{html.escape(table)}</pre>'
    content = film.read_bytes()
    if len(content) > _LARGEST_FILM:
        return text
    data = base64.b64encode(content).decode()
    return text + f'<img style="width:100%" alt="" src="data:image/gif;base64,{data}">'
