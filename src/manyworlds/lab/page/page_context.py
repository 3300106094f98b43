"""What the parts of a page share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from manyworlds.lab.lab import LiveLab
from manyworlds.lab.snapshot import Snapshot

if TYPE_CHECKING:
    import viser

    from manyworlds.lab.page.world_view import WorldView

_ERRORS = (ValueError, KeyError, OSError, RuntimeError)


class Part(Protocol):
    """A part of the page: it makes its controls when it is made, in the tab that is open then.

    It reads snapshots, and changes the world by the verbs of the lab.
    """

    period: float
    """Time between two updates [s]; 0 updates it with each picture."""

    def update(self, snapshot: Snapshot) -> None:
        """Show a new state; viser sends only what changed."""
        ...


class PageContext:
    """The lab, where to draw it, what is selected, and what went wrong last.

    Args:
        lab: what the page shows.
        server: of the page.
        view: draws the world.
    """

    def __init__(self, lab: LiveLab, server: viser.ViserServer, view: WorldView) -> None:
        self.lab = lab
        self.server = server
        self.gui: Any = server.gui
        self.view = view
        self.robots = [robot.name for robot in lab.controls]
        """Robots that have controls."""
        self.robot = self.robots[0] if self.robots else ""
        """The selected robot; empty if there is none."""
        self.body = 0
        """The selected body; 0 for none."""
        self.message = ""
        """What the last action of the user failed with; empty if it did not."""

    def attempt(self, action: Callable[[], Any]) -> Any:
        """Do what the user asked for; what goes wrong is shown, not raised."""
        try:
            result = action()
        except _ERRORS as error:
            text = error.args[0] if isinstance(error, KeyError) and error.args else error
            self.message = str(text)
            return None
        self.message = ""
        return result

    def on_click(self, handle: Any, action: Callable[[], Any]) -> Any:
        """Let a button do something; return the button."""
        handle.on_click(lambda _: self.attempt(action))
        return handle

    def on_change(self, handle: Any, action: Callable[[Any], Any]) -> Any:
        """Let an input do something with its new value, when a user gave it; return the input."""

        @handle.on_update
        def _(event: Any) -> None:
            if event.client is not None:
                self.attempt(lambda: action(handle.value))

        return handle
