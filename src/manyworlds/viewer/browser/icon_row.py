"""Rows of icons that switch something on and off."""

from __future__ import annotations

import html
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import viser

_COLUMNS = 8


@dataclass(frozen=True)
class Icon:
    """Look of a switch."""

    icon: str
    """Name of the icon in viser."""
    label: str
    key: str = ""
    """Key that does the same; empty for none."""


class Switch:
    """Something that is on or off; each change is shown in its row."""

    def __init__(self, row: IconRow, value: bool) -> None:
        self._row = row
        self._value = value

    @property
    def value(self) -> bool:
        """True if it is on."""
        return self._value

    @value.setter
    def value(self, value: bool) -> None:
        if value != self._value:
            self._value = value
            self._row.draw()


class IconRow:
    """Icons that switch something on and off, with their keys, in rows beside each other.

    Args:
        gui: GUI of the page; the row is in its present container.
        ask: kind of the message that a click sends, with `name`; see `PageContext.answers`.
        icons: looks of the switches, by name.
        on: names of those that are on at first.
    """

    def __init__(
        self, gui: viser.GuiApi, ask: str, icons: Mapping[str, Icon], on: tuple[str, ...] = ()
    ) -> None:
        self._ask = ask
        self._icons = dict(icons)
        self.switches = {name: Switch(self, name in on) for name in icons}
        """The switches, by name."""
        self.html = gui.add_html("")
        self.draw()

    def draw(self) -> None:
        """Show which switches are on, and their names in a line below."""
        buttons = "".join(self._button(name, icon) for name, icon in self._icons.items())
        on = [self._icons[name].label for name, switch in self.switches.items() if switch.value]
        names = ", ".join(on) or "nothing"
        self.html.content = (
            f'<div class="lab-icons" style="grid-template-columns:repeat({_COLUMNS},1fr)">'
            f'{buttons}</div><div class="lab-icons-on">Shown: {html.escape(names)}</div>'
        )

    def _button(self, name: str, icon: Icon) -> str:
        key = f" ({icon.key})" if icon.key else ""
        svg = importlib.import_module("viser._icons").svg_from_icon(icon.icon)
        return (
            f'<button data-lab-ask="{self._ask}" data-lab-name="{html.escape(name)}" '
            f'title="{html.escape(icon.label + key)}" aria-label="{html.escape(icon.label)}" '
            f'aria-pressed="{str(self.switches[name].value).lower()}">'
            f"{svg}<sub>{html.escape(icon.key)}</sub></button>"
        )
