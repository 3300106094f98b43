"""Keys of pages: one table for all of them, so that a key does the same on each page."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from manyworlds.viewer.browser.widgets import Attempt, directly, on_click

if TYPE_CHECKING:
    import viser

Page = Literal["play", "lab", "training"]
"""Page of `manyworlds play`, of a lab, or of a running training."""
_ALL: tuple[Page, ...] = ("play", "lab", "training")
_LIVE: tuple[Page, ...] = ("play", "lab")


@dataclass(frozen=True)
class KeyBinding:
    """Keys of an action, and the pages that have it."""

    keys: tuple[str, ...]
    """Names of the keys in viser: 'space', 'P', ...; with modifiers: 'ctrl+shift+Z'."""
    label: str
    pages: tuple[Page, ...] = _LIVE


KEYS: dict[str, KeyBinding] = {
    "pause": KeyBinding(("space", "P"), "Pause or play"),
    "step": KeyBinding(("N",), "Single step"),
    "reset": KeyBinding(("enter", "R"), "Reset"),
    "back": KeyBinding(("[",), "One step back in the past or a replay", ("lab",)),
    "forward": KeyBinding(("]",), "One step forward in the past or a replay", ("lab",)),
    "slower": KeyBinding(("-",), "Slower"),
    "faster": KeyBinding(("=",), "Faster"),
    "previous_world": KeyBinding((",",), "Previous world", ("play",)),
    "next_world": KeyBinding((".",), "Next world", ("play",)),
    "walk_in": KeyBinding(("I",), "Walk in to the selected world, or leave it"),
    "frame": KeyBinding(("F",), "Frame what is selected, or everything", _ALL),
    "launch": KeyBinding(("L",), "Launch all that was aimed", ("lab",)),
    "follow": KeyBinding(("C",), "Camera follows the robot, or stays", _ALL),
    "cinema": KeyBinding(("O",), "Camera moves on its path or orbit, or stays", ("lab",)),
    "contacts": KeyBinding(("1",), "Contacts"),
    "visuals": KeyBinding(("2",), "Visual geoms", ("lab",)),
    "collision": KeyBinding(("3",), "Collision geoms of robots"),
    "joints": KeyBinding(("4",), "Joint axes and ranges"),
    "other_collision": KeyBinding(("5",), "Other collision geoms"),
    "coloring": KeyBinding(("6",), "Color by island, body or robot", ("lab",)),
    "tendons": KeyBinding(("7",), "Tendons"),
    "inertia": KeyBinding(("8",), "Inertia boxes"),
    "com": KeyBinding(("9",), "Centers of mass"),
    "debug_shapes": KeyBinding(("D",), "Debug shapes: commands, goals, sensors"),
    "undo": KeyBinding(("ctrl+Z",), "Undo the last edit", ("lab",)),
    "redo": KeyBinding(("ctrl+shift+Z", "ctrl+Y"), "Redo the edit", ("lab",)),
    "panel": KeyBinding(("tab", "B"), "Show or hide the panel", _ALL),
    "help": KeyBinding(("H", "?"), "Show this list of keys", _ALL),
}
"""All keys of all pages, by the name of their action."""

_SHIFTED = ("?",)
_MODIFIERS = {"ctrl": "cmd/ctrl"}
_CELL = "padding-right:1.5em;white-space:nowrap"
_CLOSE = '<button class="lab-close" aria-label="Close the list of keys">\u2715</button>'
# A key that is held down counts once: viser would report the browser's repeats as new presses.
# Scripts in viser's HTML do not run, but event handlers do.
_PRESS_ONCE = (
    '<img src="data:," style="display:none" onerror="window.pressOnce ||= '
    "(window.addEventListener('keydown', event => {"
    "if (event.repeat && (event.key.length == 1 || event.key == 'Tab')"
    " && !event.target.closest?.('input, textarea')) event.stopImmediatePropagation()"
    '}, true), true)">'
)


class PageKeys:
    """Keys of one page; a key that is held down acts once.

    Besides the given actions, they show or hide the panel, and show the list of keys.

    Args:
        gui: GUI of the page.
        page: the page.
        actions: functions by name of the action in `KEYS`; a page may lack some.
        attempt: runs an action of a user.
        collapsed: whether the panel is hidden at first.

    Raises:
        ValueError: an action is not in `KEYS`, or not one of this page.
    """

    def __init__(
        self,
        gui: viser.GuiApi,
        page: Page,
        actions: Mapping[str, Callable[[], object]],
        attempt: Attempt = directly,
        collapsed: bool = False,
    ) -> None:
        self._gui = gui
        self._attempt = attempt
        self._collapsed = collapsed
        self._toggled: set[int | None] = set()
        """Ids of the browsers whose panel is not as it was at first; None for all of them."""
        self._page: Page = page
        self.actions: dict[str, Callable[[], object]] = {}
        """Functions by name of the key."""
        self._names: list[str] = []
        self._handles: list[viser.CommandHandle | viser.GuiHtmlHandle] = [gui.add_html(_PRESS_ONCE)]
        self._helps: dict[int | None, Any] = {}
        """Lists of keys that are open, by the id of the browser; None where no browser asked."""
        self.add({**actions, "panel": self._collapse, "help": self._show_help})
        if collapsed:  # by the browser, once it has what is in the panel; see `shell.js`
            self._handles.append(gui.add_html("<i data-lab-collapsed hidden></i>"))

    def add(self, actions: Mapping[str, Callable[[], object]]) -> None:
        """Register further actions; see `PageKeys`."""
        for name, action in actions.items():
            if name not in KEYS or self._page not in KEYS[name].pages:
                known = ", ".join(n for n, binding in KEYS.items() if self._page in binding.pages)
                raise ValueError(f"The page '{self._page}' has no key for '{name}': {known}.")
            self._names.append(name)
            for key in KEYS[name].keys:
                self.actions[key] = action
                self._register(key, KEYS[name].label, action)

    def remove(self) -> None:
        """Remove all keys from the page."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    @property
    def names(self) -> set[str]:
        """Names of the actions that the page has."""
        return set(self._names)

    def _register(self, key: str, label: str, action: Callable[[], object]) -> None:
        """Add a command with a key to the page."""
        *held, last = key.split("+")
        hotkey: Any = last  # the page accepts more keys than viser's type names
        modifiers = ["shift"] * (key in _SHIFTED) + [_MODIFIERS.get(m, m) for m in held]
        modifier: Any = "+".join(modifiers) or None
        command = self._gui.add_command(label, hotkey=hotkey, modifier=modifier)

        @command.on_trigger
        def _(event: viser.CommandEvent) -> None:
            if action in (self._collapse, self._show_help):
                self._attempt(lambda: action(event.client))  # type: ignore[call-arg]
            else:
                self._attempt(action)

        self._handles.append(command)

    def _collapse(self, client: viser.ClientHandle | None = None) -> None:
        """Show or hide the panel of one browser, or of all for None."""
        browser = None if client is None else client.client_id
        panel = self._gui.main_panel if client is None else client.gui.main_panel
        self._toggled ^= {browser}
        if (browser in self._toggled) != self._collapsed:
            panel.minimize()
        else:
            panel.expand()

    def _show_help(self, client: viser.ClientHandle | None = None) -> None:
        """Show the list of keys in one browser, or in all for None; or close it there."""
        browser = None if client is None else client.client_id
        if (shown := self._helps.pop(browser, None)) is not None:
            shown.close()
            return
        gui = self._gui if client is None else client.gui
        with gui.add_modal("Keys") as self._helps[browser]:
            gui.add_html(f"{_CLOSE}{keys_html(self._names)}")
            on_click(gui.add_button("Close"), lambda: self._show_help(client))


def keys_html(names: Iterable[str]) -> str:
    """Return a table of the keys of some actions, in the order of `KEYS`."""
    wanted = set(names)
    rows = [
        f"<tr><td style='{_CELL}'><b>{html.escape(key_names(binding))}</b></td>"
        f"<td>{html.escape(binding.label)}</td></tr>"
        for name, binding in KEYS.items()
        if name in wanted
    ]
    return f"<table>{''.join(rows)}</table>"


def key_names(binding: KeyBinding) -> str:
    """Return the keys of an action as text: 'Space or P'."""
    names: list[str] = []
    for key in binding.keys:
        parts = [key]
        if len(key) > 1:  # the key "+" is no combination
            parts = key.split("+")
        names.append("-".join(part.capitalize() for part in parts))
    return " or ".join(names)


def keys_markdown() -> str:
    """Return the table of all keys for the documentation."""
    lines = ["| key | effect | pages |", "|---|---|---|"]
    for binding in KEYS.values():
        pages = ", ".join(binding.pages)
        if binding.pages == _ALL:
            pages = "all"
        lines.append(f"| {key_names(binding)} | {binding.label} | {pages} |")
    return "\n".join(lines)
