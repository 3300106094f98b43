"""State shared by the parts of a page."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from manyworlds.lab.edits.editable_fields import body_of, name_of
from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.viewer.browser.markup import note_html
from manyworlds.viewer.browser.widgets import notify, on_change, on_click

if TYPE_CHECKING:
    import viser

    from manyworlds.lab.page.shown_lab import ShownLab
    from manyworlds.lab.page.world_view import WorldView
    from manyworlds.lab.verb_methods import LabVerbs

Answer = Callable[[str, dict[str, Any]], dict[str, object]]
"""Maps the name of a browser and a message to the reply."""
_NOTICE_PERIOD_S = 2.0  # shortest time between two notices of the same error
_INPUT_ERRORS = (ValueError, KeyError, OSError, RuntimeError)
_T = TypeVar("_T")
_Button = TypeVar("_Button", bound="viser.GuiButtonHandle")
_Input = TypeVar("_Input", bound="viser.GuiInputHandle[Any]")


class Part(Protocol):
    """A part of the page; it adds its controls to the tab that is open while it is made.

    It reads snapshots, and changes the world through `PageContext.verbs`.
    """

    period: float
    """Period of the updates [s]; 0 updates the part with each frame."""

    def update(self, snapshot: Snapshot) -> None:
        """Show a new state; viser sends only what changed."""
        ...


@runtime_checkable
class RenewablePart(Part, Protocol):
    """Part that keeps its controls over a rebuild of the world; others are made again."""

    def renew(self) -> list[str]:
        """Show the context's new world; return sentences about what is not there any more."""
        ...


class PageContext:
    """The lab, its page, the selection, and the last error.

    Args:
        lab: lab that the page shows, for reading and for verbs.
        server: server of the page.
        view: drawing of the world.
    """

    def __init__(self, lab: ShownLab, server: viser.ViserServer, view: WorldView) -> None:
        self.lab = lab
        self.server = server
        self.gui: viser.GuiApi = server.gui
        self.view = view
        self.robot = ""
        """The selected robot; empty if there is none."""
        self.body = 0
        """The selected body; 0 for none."""
        self.item = ""
        """Name of the selected item of the scene, if it was selected as a whole."""
        self.bodies: tuple[int, ...] = ()
        """The selected body, or all bodies of the selected item."""
        self.moved: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None = None
        """While the selection is dragged: position [m] and orientation (wxyz) of its handle at
        first, and now."""
        self.aimed: Callable[[np.ndarray], object] | None = None
        """Takes the point of the next click in the view [m], shape [3], in place of a selection."""
        self.part = ""
        """The selected element that is no body, as `geom:rim`; empty for none."""
        self.message = ""
        """Error of the user's last action; empty if there was none."""
        self._next_notice = -math.inf
        self.failures: list[str] = []
        """Sentences about parts of the page that failed."""
        self.note = ""
        """Remark on the user's last action; empty if there is none."""
        self.answers: dict[str, Answer] = {}
        """Functions that answer what scripts of the page ask for, by the kind of the message."""
        self.chases = True
        """True if the camera follows behind the robot that the page drives."""
        self._catalogue: dict[str, dict[str, dict[str, Any]]] = {}
        self._list_robots()

    def _list_robots(self) -> None:
        self.robots = [*self.lab.controls]
        """Robots that have controls."""
        if self.robot not in self.robots:
            self.robot = next(iter(self.robots), "")

    def renew(self, lab: ShownLab, view: WorldView) -> list[str]:
        """Show a rebuilt world; the selection stays where robot and body are still there.

        Args:
            lab: the lab.
            view: drawing of the new world.

        Returns:
            Sentences about what is not there any more.
        """
        robot = self.robot
        body = self.body
        before = self.view
        self.lab = lab
        self.view = view
        self.failures.clear()
        self._list_robots()
        gone = [f"the robot '{robot}' is gone"] * (self.robot != robot)
        self.select("body", view.find_again(body, before))
        if body and not self.body:
            gone.append(f"the selected body '{before.labels[body]}' is gone")
        view.follow = view.find_again(before.follow, before)
        if before.follow and not view.follow:
            gone.append(f"the followed body '{before.labels[before.follow]}' is gone")
        return gone

    def attempt(self, action: Callable[[], _T]) -> _T | None:
        """Run an action of a user; show an error instead of raising it.

        The error is at the top of the panel, which may be out of sight, and for some seconds in
        the view. Errors that invalid input does not explain are also printed, with their traceback.
        """
        before = self.message
        now = time.monotonic()
        result = self._run(action)
        # A drag repeats the same error with each move of the mouse.
        if self.message and (self.message != before or now >= self._next_notice):
            self._next_notice = now + _NOTICE_PERIOD_S
            for client in self.server.get_clients().values():
                notify(client, "Not done", self.message)
        return result

    def _run(self, action: Callable[[], _T]) -> _T | None:
        """Run an action; keep its error, instead of raising it."""
        self.note = ""
        try:
            result = action()
        except _INPUT_ERRORS as error:
            text = error.args[0] if isinstance(error, KeyError) and error.args else error
            self.message = str(text)
            return None
        except Exception as error:
            traceback.print_exc()
            self.message = f"{type(error).__name__}: {error}"
            return None
        self.message = ""
        return result

    def attempt_at(self, note: viser.GuiHtmlHandle, action: Callable[[], str]) -> None:
        """Run an action of a user; show its outcome, or its error, beside its controls, too.

        Args:
            note: place of the outcome.
            action: returns the outcome, as a sentence.
        """
        outcome = self._run(action)
        note.content = note_html(outcome or self.message, error=outcome is None)

    @property
    def verbs(self) -> LabVerbs:
        """Verbs of the lab: all that the page changes in the world, it changes by them."""
        return self.lab.verbs

    @property
    def running(self) -> bool:
        """True while time advances: the world is not paused, nor is a replay that drives it."""
        replay = self.lab.facts.replay
        return not self.lab.snapshot.paused and (replay.playing or not replay.is_active)

    def toggle_pause(self) -> None:
        """Pause or play: the replay if there is one, which can be sought while it is paused."""
        running = self.running
        replay = self.lab.facts.replay
        if replay.is_active:
            if running:
                self.verbs.replay_pause()
            else:
                self.verbs.replay_play()
        if self.lab.snapshot.paused or not replay.is_active:
            self.verbs.set_paused(paused=running)

    def step(self) -> None:
        """Make a step of the world, or show the next frame of the replay if there is one."""
        if self.lab.facts.replay.is_active:
            self.verbs.replay_step_frames(n_frames=1)
        else:
            self.verbs.step()

    def note_ended_replay(self, session: str) -> None:
        """Note that an action ended a replay, if it did.

        Args:
            session: session of the replay; empty for none.
        """
        if session:
            self.note = f"this ended the replay of '{session}'"

    def on_click(self, handle: _Button, action: Callable[[], object]) -> _Button:
        """Run an action when a button is clicked; return the button."""
        return on_click(handle, action, self.attempt)

    def add_button(
        self,
        label: str,
        action: Callable[[], object],
        hint: str | None = None,
        icon: viser.IconName | None = None,
    ) -> viser.GuiButtonHandle:
        """Add a button that runs an action when it is clicked."""
        return self.on_click(self.gui.add_button(label, hint=hint, icon=icon), action)

    def on_change(self, handle: _Input, action: Callable[[Any], object]) -> _Input:
        """Run an action with each new value that a user gives an input; return the input."""
        return on_change(handle, action, self.attempt)

    @property
    def element(self) -> str:
        """The selected element as `KIND:NAME`; empty for none."""
        body = self.view.name_of(self.body) or str(self.body)
        return self.part or (f"body:{body}" if self.body else "")

    @property
    def selected_name(self) -> str:
        """Name of the selected item or body, for people; empty for none."""
        return self.item or self.view.labels[self.body]

    def select(self, kind: str, id: int) -> None:
        """Select an element, and the body that it belongs to."""
        model = self.lab.model
        self.part = "" if kind == "body" else f"{kind}:{name_of(model, kind, id)}"
        self.body = body_of(model, kind, id)
        self.item = ""
        self.bodies = (self.body,) if self.body else ()

    def select_item(self, name: str, bodies: tuple[int, ...]) -> None:
        """Select an item of the scene with all its bodies, the first of which the tabs show."""
        self.select("body", next(iter(bodies), 0))
        self.item = name
        self.bodies = bodies

    def fields_of(self, verb: str) -> dict[str, dict[str, Any]]:
        """Return the fields of a verb, by name, as it describes them; see `describe_verbs`."""
        if not self._catalogue:
            for described in self.lab.face.describe_verbs():
                fields: Any = described["fields"]
                self._catalogue[str(described["name"])] = {field["name"]: field for field in fields}
        return self._catalogue[verb]

    def undo(self) -> None:
        """Undo an edit, and note that."""
        self.note = f"undone: {self.verbs.undo()['label']}"

    def redo(self) -> None:
        """Redo an edit, and note that."""
        self.note = f"redone: {self.verbs.redo()['label']}"

    def select_robot(self, name: str) -> None:
        """Select a robot."""
        self.robot = name


class PagePart:
    """Part of the page with its context; without `renew`, a rebuild makes it again.

    Args:
        ctx: context of the page.
    """

    def __init__(self, ctx: PageContext) -> None:
        self._ctx = ctx

    def update(self, snapshot: Snapshot) -> None:
        """Show a new state; a part that shows none leaves this as it is."""


class KeptPart(PagePart):
    """Part whose controls do not depend on the world: a rebuild leaves them as they are."""

    def renew(self) -> list[str]:
        """Keep all controls."""
        return []
