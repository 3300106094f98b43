"""Keys of the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from manyworlds.lab.page.overlay_controls import OverlayPart
from manyworlds.lab.page.page_context import PageContext
from manyworlds.lab.page.top_bar import TopBar

# A key that is held is pressed once: viser would take what the browser repeats for new presses.
# Scripts in viser's HTML do not run, but handlers of events do.
_PRESS_ONCE = (
    '<img src="data:," style="display:none" onerror="window.pressOnce ||= '
    "(window.addEventListener('keydown', event => {"
    "if (event.repeat && (event.key.length == 1 || event.key == 'Tab')"
    " && !event.target.closest?.('input, textarea')) event.stopImmediatePropagation()"
    '}, true), true)">'
)


class Hotkeys:
    """Registers all keys.

    Args:
        ctx: of the page.
        top_bar: pauses and plays.
        overlays: are switched by keys.
        collapsed: whether the panel is hidden at first.
    """

    def __init__(
        self,
        ctx: PageContext,
        top_bar: TopBar,
        overlays: OverlayPart | None,
        collapsed: bool = False,
    ) -> None:
        self.actions: dict[str, Callable[[], Any]] = {}
        """What each key does."""
        self._ctx = ctx
        self._collapsed = False
        ctx.gui.add_html(_PRESS_ONCE)
        if collapsed:
            self._collapse()
        lab = ctx.lab
        self._add("P", "Pause or play", top_bar.toggle)
        self._add("space", "Pause or play", top_bar.toggle)
        self._add("N", "Single step", lambda: lab.step(1))
        self._add("R", "Reset", lab.reset)
        self._add("tab", "Show or hide the panel", self._collapse)
        if overlays is None:
            return
        self._add("1", "Contacts", lambda: overlays.toggle("contact_forces", "contact_points"))
        self._add("2", "Visual shapes", overlays.toggle_visuals)
        self._add("3", "Collision shapes of robots", lambda: overlays.toggle("collision"))
        self._add("4", "Joint axes and ranges", lambda: overlays.toggle("joints"))
        self._add("5", "Collision shapes of the rest", lambda: overlays.toggle("other_collision"))
        self._add("6", "Colours by island, body, robot", overlays.next_coloring)
        self._add("7", "Tendons", lambda: overlays.toggle("tendons"))

    def _add(self, key: Any, label: str, action: Callable[[], Any]) -> None:
        self.actions[key] = action
        command = self._ctx.gui.add_command(label, hotkey=key)
        command.on_trigger(lambda _: self._ctx.attempt(action))

    def _collapse(self) -> None:
        panel = self._ctx.gui.main_panel
        self._collapsed = not self._collapsed
        if self._collapsed:
            panel.minimize()
        else:
            panel.expand()
