"""Plots of what is chosen by name, after each physics step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_boxes import BoxPart
from manyworlds.lab.page.page_context import PageContext, PagePart
from manyworlds.lab.play.series import LONGEST_S, thin_out
from manyworlds.viewer.browser.line_plot import COLORS, LinePlot
from manyworlds.viewer.browser.widgets import Section

if TYPE_CHECKING:
    import viser

    from manyworlds.lab.verb_methods import ReadSeriesReply

_LEAST = 0.005  # smallest range of an axis, whose numbers have three decimals
_MOST_POINTS = 6000
_CHOOSE = "choose a quantity"
_NEW = "a new plot"
_HEIGHT_PX = 150
_WINDOW_PX = 460
_ICON = cast("viser.IconName", "chart-line")


@dataclass
class Plot:
    """Quantities that are plotted together."""

    names: tuple[str, ...]
    place: viser.GuiFolderHandle
    lines: LinePlot | None = None
    """What draws them; None before their first values."""
    widths: list[int] = field(default_factory=list)
    """Number of lines of each quantity."""


class PlotPart(PagePart):
    """Plots of chosen quantities over the last seconds, in the tab or in a window of the page."""

    period = 0.2

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        self.chosen: list[tuple[str, ...]] = []
        """Names of the quantities of each plot."""
        self.plots: list[Plot] = []
        """Plots that are on the page."""
        self._outdated = True
        gui = ctx.gui
        self.choice: viser.GuiDropdownHandle[Any] = gui.add_dropdown(
            "Plot", (_CHOOSE,), hint="Type to search. Chosen again, it is taken out."
        )
        ctx.on_change(self.choice, self.add)
        self.place: viser.GuiDropdownHandle[Any] = gui.add_dropdown(
            "In", (_NEW,), hint="A plot has up to six lines."
        )
        self.seconds = gui.add_slider("Seconds", 1, int(LONGEST_S), 1, 10)
        self.apart = gui.add_checkbox(
            "Own window", False, hint="In a window of the page, which can be moved and docked."
        )
        ctx.on_change(self.apart, lambda _: self._redraw())
        self.clear = ctx.add_button("Clear plots", self.remove)
        self.hint = gui.add_markdown("Click in a plot to go back to that time.")
        self._section = Section(gui)
        self._window: viser.PanelHandle | None = None
        self.renew()

    def add(self, name: str) -> None:
        """Plot a quantity in the chosen place, or take it out of there.

        Raises:
            ValueError: the plot is full.
        """
        if name not in self._units:
            return
        at = self.place.options.index(self.place.value) - 1
        if at < 0:
            if (name,) not in self.chosen:
                self.chosen.append((name,))
        elif name in self.chosen[at]:
            self.chosen[at] = tuple(known for known in self.chosen[at] if known != name)
        else:
            if at < len(self.plots) and sum(self.plots[at].widths) >= len(COLORS):
                raise ValueError(f"A plot has at most {len(COLORS)} lines: choose 'In: {_NEW}'.")
            self.chosen[at] = (*self.chosen[at], name)
        self.chosen = [names for names in self.chosen if names]
        self._redraw()

    def remove(self) -> None:
        """Remove all plots."""
        self.chosen = []
        self.choice.value = _CHOOSE
        self._redraw()

    def close(self) -> None:
        """Close the window."""
        if self._window is not None:
            self._window.remove()
            self._window = None

    def renew(self) -> list[str]:
        """Keep the plots of quantities that the new world has, with the same units."""
        before = getattr(self, "_units", {})
        reply = self._ctx.verbs.list_quantities()
        self._units = {known["name"]: known["unit"] for known in reply["quantities"]}
        self.choice.options = (_CHOOSE, *self._units)
        names = [name for plot in self.chosen for name in plot]
        gone = [name for name in dict.fromkeys(names) if self._units.get(name) != before[name]]
        kept = (tuple(name for name in plot if name not in gone) for plot in self.chosen)
        self.chosen = [plot for plot in kept if plot]
        self._redraw()
        return [f"the plot '{name}' is gone" for name in gone]

    def update(self, snapshot: Snapshot) -> None:
        """Draw the newest values; a world that was just rebuilt may lack some."""
        if self._outdated:  # here, because a plot that is gone cannot be drawn
            self._outdated = False
            self._rebuild()
        names = {name for plot in self.plots for name in plot.names}
        if not names:
            return
        seconds = float(self.seconds.value)
        reply = self._ctx.verbs.read_series(names=sorted(names), seconds=seconds)
        for plot in self.plots:
            self._draw(plot, reply)

    def _redraw(self) -> None:
        self._outdated = True

    def _draw(self, plot: Plot, reply: ReadSeriesReply) -> None:
        """Draw the values of one plot from the time on at which all of them are known."""
        series = [reply["series"][name] for name in plot.names]
        count = min(len(each["times"]) for each in series)
        if not count:
            return
        widths = [each["values"].shape[1] for each in series]
        if plot.lines is None or widths != plot.widths:
            plot.widths = widths
            self._add_lines(plot)
        times = series[0]["times"][-count:]
        values = np.hstack([each["values"][-count:] for each in series])[:, : len(COLORS)]
        times, values = thin_out(times, values, _MOST_POINTS)
        assert plot.lines is not None
        plot.lines.draw(times, *values.T)

    def _add_lines(self, plot: Plot) -> None:
        if plot.lines is not None:
            plot.lines.remove()
        titles = {name: f"{name} [{unit}]" if unit else name for name, unit in self._units.items()}
        labels: list[str] = []
        for name, width in zip(plot.names, plot.widths, strict=True):
            labels += [titles[name], *(f"{titles[name]} {i}" for i in range(1, width))]
        title = ""
        if len(plot.names) == 1:
            title = titles[plot.names[0]]
            labels = [str(i) for i in range(len(labels))]
        with plot.place:
            plot.lines = LinePlot(
                self._ctx.gui,
                title,
                labels[: len(COLORS)],
                height=_HEIGHT_PX,
                x_label="Time [s]",
                least=_LEAST,
            )

    def _rebuild(self) -> None:
        """Make places for all plots, and show what can be done with them."""
        gui = self._ctx.gui
        chosen = self.chosen.copy()
        at = self.place.options.index(self.place.value)
        self.close()
        place = self._section.empty()
        if chosen and self.apart.value:
            self._window = gui.add_panel()
            self._window.float(x=12, y=12, width=_WINDOW_PX)
            place = self._window.add_tab("Plots", _ICON)
        with place:
            self.plots = [Plot(names, gui.add_folder(None)) for names in chosen]
        numbered = (f"{i}: {', '.join(names)}" for i, names in enumerate(chosen, 1))
        self.place.options = (_NEW, *numbered)
        self.place.value = self.place.options[at if at <= len(chosen) else 0]
        for handle in (self.place, self.seconds, self.apart, self.clear, self.hint):
            handle.visible = bool(chosen)


class PlotMomentPart(BoxPart):
    """Shows in plots which moment of the past is shown, and goes to one that is clicked there.

    Args:
        ctx: context of the page.
        address: address of the page's own WebSocket, see `DrivePart`.
    """

    period = 0.1

    def __init__(self, ctx: PageContext, address: str) -> None:
        super().__init__(ctx)
        self.mark = ctx.gui.add_html("")
        self._add_box("plot_box", address)
        ctx.answers["plot_time"] = self._go_to

    def update(self, snapshot: Snapshot) -> None:
        """Tell browsers the time of the moment that is shown; empty in the present."""
        timeline = self._ctx.lab.facts.timeline
        time = f"{timeline.world_time:.6f}" if timeline.is_active else ""
        self.mark.content = f'<i data-lab-moment="{time}" hidden></i>'

    def _go_to(self, browser: str, message: dict[str, Any]) -> dict[str, object]:
        """Show the moment of a simulated time.

        Args:
            browser: name of the browser.
            message: `time`, the simulated time [s].
        """
        timeline = self._ctx.lab.facts.timeline
        newest = self._ctx.lab.snapshot.time
        if timeline.is_active:
            newest = timeline.world_time + timeline.ago
        ago = newest - float(message["time"])
        ago = min(max(0.0, ago), timeline.duration_s)
        self._ctx.attempt(lambda: self._ctx.verbs.timeline_seek(ago=ago))  # the view shows errors
        return {}
