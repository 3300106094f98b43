"""Parts of a page in their tabs, which outlive rebuilds of the world."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from manyworlds.lab.page.page_context import PageContext, Part, RenewablePart
from manyworlds.viewer.browser.widgets import Section

if TYPE_CHECKING:
    import viser

PartMaker = Callable[[PageContext], Part]
_ICONS = {
    "Task": "target",
    "Training": "school",
    "Robot": "robot",
    "Play": "device-gamepad-2",
    "Plots": "chart-line",
    "View": "eye",
    "Cameras": "camera",
    "Scene": "cube",
    "World": "world",
    "States": "bookmark",
    "Record": "player-record",
}
"""Names of the icons of tabs, by title; other tabs have that of a plug."""


class PageParts:
    """Parts of a page by their class's name.

    After a rebuild of the world, parts that have `renew` keep their controls, so that tabs, folders
    and inputs stay in each browser as they are. Other parts are made again in their places.

    Args:
        ctx: context of the page.
        first: parts outside of the tabs, by name.
        tabs: parts of each tab, by its title.
    """

    def __init__(
        self,
        ctx: PageContext,
        first: Mapping[str, Part],
        tabs: Mapping[str, Sequence[PartMaker]],
    ) -> None:
        self._ctx = ctx
        self.by_name: dict[str, Part] = dict(first)
        """All parts."""
        self._group = ctx.gui.add_tab_group()
        self._tabs: dict[str, viser.GuiTabHandle] = {}
        self._remade: dict[str, tuple[str, PartMaker, Section]] = {}
        self._add_tabs(tabs)

    def renew(self, tabs: Mapping[str, Sequence[PartMaker]]) -> list[str]:
        """Show the context's new world; return sentences about what is not there any more.

        Args:
            tabs: parts of each tab; tabs of other titles are removed, new ones are added.
        """
        gone: list[str] = []
        for title in [title for title in self._tabs if title not in tabs]:
            self._tabs.pop(title).remove()
            for name in [n for n, (tab, *_) in self._remade.items() if tab == title]:
                _close(self.by_name.pop(name))
                del self._remade[name]
        makers = {title: {self._name(make): make for make in tabs[title]} for title in self._tabs}
        for name, part in list(self.by_name.items()):
            if isinstance(part, RenewablePart):
                gone += part.renew()
            elif name in self._remade:
                _close(part)
                title, make, section = self._remade[name]
                self._make(title, makers[title].get(self._name(make), make), section)
        self._add_tabs({title: made for title, made in tabs.items() if title not in self._tabs})
        return gone

    def close(self) -> None:
        """End the threads of parts that have some."""
        for part in self.by_name.values():
            _close(part)

    def _add_tabs(self, tabs: Mapping[str, Sequence[PartMaker]]) -> None:
        for title, makers in tabs.items():
            icon = cast("viser.IconName", _ICONS.get(title, "plug"))
            self._tabs[title] = self._group.add_tab(title, icon=icon)
            with self._tabs[title]:
                for make in makers:
                    self._make(title, make, Section(self._ctx.gui))

    def _make(self, title: str, make: PartMaker, section: Section) -> None:
        with section.empty():
            part = make(self._ctx)
        self.by_name[type(part).__name__] = part
        if not isinstance(part, RenewablePart):
            self._remade[type(part).__name__] = title, make, section

    @staticmethod
    def _name(make: PartMaker) -> str:
        return getattr(make, "__qualname__", type(make).__qualname__)


def _close(part: Part) -> None:
    if (close := getattr(part, "close", None)) is not None:
        close()
