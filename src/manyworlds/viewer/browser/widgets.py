"""Buttons and inputs of pages, and the actions that they carry out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import viser

Attempt = Callable[[Callable[[], Any]], Any]
"""Runs an action of a user; a page that shows errors catches them here."""
_Handle = TypeVar("_Handle", bound="Any")

# Names of icons; viser's own type for them exists only once it is imported.
PLAY: Any = "player-play"
PAUSE: Any = "player-pause"


def directly(action: Callable[[], Any]) -> Any:
    """Run an action; errors are raised to the caller."""
    return action()


def on_click(handle: _Handle, action: Callable[[], Any], attempt: Attempt = directly) -> _Handle:
    """Run an action when a button is clicked; return the button."""
    handle.on_click(lambda _: attempt(action))
    return handle


def on_change(
    handle: _Handle, action: Callable[[Any], Any], attempt: Attempt = directly
) -> _Handle:
    """Run an action with each new value that a user gives an input; return the input.

    Values that the program sets do not run it.
    """

    @handle.on_update
    def _(event: Any) -> None:
        if event.client is not None:
            attempt(lambda: action(handle.value))

    return handle


def add_choice(
    gui: viser.GuiApi,
    label: str,
    actions: Mapping[str, Callable[[], Any]],
    attempt: Attempt = directly,
) -> viser.GuiButtonGroupHandle:
    """Add a row of buttons, each with its own action."""
    group = gui.add_button_group(label, tuple(actions))
    group.on_click(lambda event: attempt(actions[event.target.value]))
    return group


def relabel(button: Any, label: str, icon: Any = None) -> None:
    """Change the label of a button, and its icon if one is given, if they differ."""
    if button.label != label:
        button.label = label
        if icon is not None:
            button.icon = icon


def show_playing(button: Any, playing: bool) -> None:
    """Show a pause button while playing, and a play button otherwise."""
    relabel(button, *(("Pause", PAUSE) if playing else ("Play", PLAY)))
