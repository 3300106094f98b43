"""Buttons and inputs of pages, and the actions that they carry out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    import viser

Attempt = Callable[[Callable[[], object]], object]
"""Runs an action of a user; a page that shows errors catches them here."""
_Button = TypeVar("_Button", bound="viser.GuiButtonHandle")
_Input = TypeVar("_Input", bound="viser.GuiInputHandle[Any]")

PLAY = cast("viser.IconName", "player-play")
PAUSE = cast("viser.IconName", "player-pause")


def directly(action: Callable[[], object]) -> object:
    """Run an action; errors are raised to the caller."""
    return action()


def on_click(handle: _Button, action: Callable[[], object], attempt: Attempt = directly) -> _Button:
    """Run an action when a button is clicked; return the button."""

    @handle.on_click
    def _(_: object) -> None:
        attempt(action)

    return handle


def on_change(
    handle: _Input, action: Callable[[Any], object], attempt: Attempt = directly
) -> _Input:
    """Run an action with each new value that a user gives an input; return the input.

    Values that the program sets do not run it.
    """

    @handle.on_update
    def _(event: viser.GuiEvent[_Input]) -> None:
        if event.client is not None:
            attempt(lambda: action(handle.value))

    return handle


def add_choice(
    gui: viser.GuiApi,
    label: str,
    actions: Mapping[str, Callable[[], object]],
    attempt: Attempt = directly,
) -> viser.GuiButtonGroupHandle:
    """Add a row of buttons, each with its own action."""
    group = gui.add_button_group(label, tuple(actions))

    @group.on_click
    def _(event: viser.GuiEvent[viser.GuiButtonGroupHandle]) -> None:
        attempt(actions[event.target.value])

    return group


def relabel(button: viser.GuiButtonHandle, label: str, icon: viser.IconName | None = None) -> None:
    """Change the label of a button, and its icon if one is given, if they differ."""
    if button.label != label:
        button.label = label
        if icon is not None:
            button.icon = icon


def show_playing(button: viser.GuiButtonHandle, playing: bool) -> None:
    """Show a pause button while playing, and a play button otherwise."""
    relabel(button, *(("Pause", PAUSE) if playing else ("Play", PLAY)))


class Section:
    """Place on a page whose controls can be replaced.

    Args:
        gui: GUI of the page; the section is in its present container.
    """

    def __init__(self, gui: viser.GuiApi) -> None:
        self._gui, self._place = gui, gui.add_folder(None)
        self._inside: viser.GuiFolderHandle | None = None

    def empty(self) -> viser.GuiFolderHandle:
        """Remove all controls; return the container of new ones."""
        if self._inside is not None:
            self._inside.remove()
        with self._place:
            self._inside = self._gui.add_folder(None)
        return self._inside
