"""Buttons and inputs of pages, and the actions that they carry out."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np

if TYPE_CHECKING:
    import viser

Attempt = Callable[[Callable[[], object]], object]
"""Runs an action of a user; a page that shows errors catches them here."""
_Button = TypeVar("_Button", bound="viser.GuiButtonHandle")
_Value = TypeVar("_Value")
_Number = TypeVar("_Number", int, float)
_Input = TypeVar("_Input", bound="viser.GuiInputHandle[Any]")

PLAY = cast("viser.IconName", "player-play")
PAUSE = cast("viser.IconName", "player-pause")
MOST_DIGITS = 9
"""Decimals of numbers that are not on a grid."""
_ENTERED_S = 1.0
"""Time after which a page no longer waits for the effect of what a user has entered."""
_NOTICE_S = 8.0


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

    A number beyond a bound of the input is set to the bound, with a message to the user. Values
    that the program sets do not run the action.
    """
    given: deque[Any] = deque()

    @handle.on_update
    async def _(event: viser.GuiEvent[_Input]) -> None:
        # A coroutine runs at once. On a busy machine, the program may show another value in the
        # input before the next function runs.
        if event.client is not None:
            given.append(handle.value)

    @handle.on_update
    def _(event: viser.GuiEvent[_Input]) -> None:
        if event.client is not None:
            value = _bounded(handle, given.popleft(), event.client)
            attempt(lambda: action(value))

    return handle


def _bounded(handle: viser.GuiInputHandle[Any], value: Any, client: viser.ClientHandle) -> Any:
    """Return a value within the bounds of an input; show that value, and why it differs."""
    low = getattr(handle, "min", None)
    high = getattr(handle, "max", None)
    if low is None and high is None:
        return value
    nearest = np.clip(value, low, high)
    if np.array_equal(nearest, value):
        return value
    given, limit = (
        ", ".join(f"{number:.9g}" for number in np.ravel(values)) for values in (value, nearest)
    )
    used = type(value)(nearest.tolist())
    handle.value = used
    notify(client, handle.label, f"{given} is out of bounds: the nearest value, {limit}, is used.")
    return used


def notify(client: viser.ClientHandle, title: str, text: str) -> None:
    """Show a text in the view of one browser for some seconds."""
    client.add_notification(title, text, auto_close_seconds=_NOTICE_S, color="orange")


def add_number(
    gui: viser.GuiApi,
    label: str,
    value: _Number,
    *,
    min: _Number,
    max: _Number | None = None,
    step: _Number,
    hint: str | None = None,
) -> viser.GuiNumberHandle[_Number]:
    """Add a number input that takes all digits that a user types, not only those of its step."""
    handle = gui.add_number(label, value, min=min, max=max, step=step, hint=hint)
    if isinstance(value, float):
        handle.precision = MOST_DIGITS
    return handle


class ShownValue(Generic[_Value]):
    """Input that shows a value of the program, and that a user may set.

    What a user enters stays until the program has that value, or for a second if it does not take
    it: before, the program's value is an old one.

    Args:
        handle: the input.
    """

    def __init__(self, handle: viser.GuiInputHandle[_Value]) -> None:
        self.handle = handle
        self._shown = handle.value
        self._until = -math.inf

    @property
    def pending(self) -> bool:
        """True while the input shows what a user has entered, not what the program has."""
        return self.handle.value != self._shown or self._until > -math.inf

    def show(self, value: _Value) -> None:
        """Show the program's value, unless a user has just entered another one."""
        now = time.monotonic()
        if self.handle.value != self._shown:
            self._shown = self.handle.value
            self._until = now + _ENTERED_S
        if value == self._shown or now >= self._until:
            self._until = -math.inf
            self.handle.value = value
            self._shown = self.handle.value


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
    if playing:
        relabel(button, "Pause", PAUSE)
    else:
        relabel(button, "Play", PLAY)


class Section:
    """Place on a page whose controls can be replaced.

    Args:
        gui: GUI of the page; the section is in its present container.
    """

    def __init__(self, gui: viser.GuiApi) -> None:
        self._gui = gui
        self._place = gui.add_folder(None)
        self._inside: viser.GuiFolderHandle | None = None

    def empty(self) -> viser.GuiFolderHandle:
        """Remove all controls; return the container of new ones."""
        if self._inside is not None:
            self._inside.remove()
        with self._place:
            self._inside = self._gui.add_folder(None)
        return self._inside
