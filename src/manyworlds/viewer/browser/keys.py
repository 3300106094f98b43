"""Keys of pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from manyworlds.viewer.browser.widgets import Attempt, directly

if TYPE_CHECKING:
    import viser

# A key that is held down counts once: viser would report the browser's repeats as new presses.
# Scripts in viser's HTML do not run, but event handlers do.
_PRESS_ONCE = (
    '<img src="data:," style="display:none" onerror="window.pressOnce ||= '
    "(window.addEventListener('keydown', event => {"
    "if (event.repeat && (event.key.length == 1 || event.key == 'Tab')"
    " && !event.target.closest?.('input, textarea')) event.stopImmediatePropagation()"
    '}, true), true)">'
)


@dataclass(frozen=True)
class Key:
    """Key of a page and its action."""

    name: Any
    """Name of the key in viser: 'space', 'P', ..."""
    label: str
    """Label in the page's list of commands."""
    action: Callable[[], object]


def add_keys(
    gui: viser.GuiApi, keys: Iterable[Key], attempt: Attempt = directly
) -> list[viser.CommandHandle]:
    """Register keys with a page; return their handles."""
    handles = []
    for key in keys:
        command = gui.add_command(key.label, hotkey=key.name)

        def run(_: object, key: Key = key) -> None:
            attempt(key.action)

        command.on_trigger(run)
        handles.append(command)
    return handles


def ignore_repeats(gui: viser.GuiApi) -> viser.GuiHtmlHandle:
    """Make a key that is held down count once; return the invisible element that does this."""
    return gui.add_html(_PRESS_ONCE)
