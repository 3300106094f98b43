"""Plots of joints, actuators and sensors."""

from __future__ import annotations

from collections import deque

import numpy as np

from manyworlds.lab.loop.snapshot import Snapshot
from manyworlds.lab.page.page_context import PageContext, PagePart
from manyworlds.lab.page.quantities import Quantity, quantities
from manyworlds.viewer.browser.line_plot import COLORS, LinePlot

_HISTORY_S = 10.0
_LEAST = 0.005  # smallest range of an axis, whose numbers have three decimals


class PlotPart(PagePart):
    """Plots of chosen quantities over the last ten seconds."""

    period = 0.1

    def __init__(self, ctx: PageContext) -> None:
        super().__init__(ctx)
        self._known = {q.name: q for q in quantities(ctx.lab.model)}
        self.plots: dict[str, tuple[LinePlot, Quantity, deque[tuple[float, np.ndarray]]]] = {}
        gui = ctx.gui
        names = ("choose a quantity", *self._known)
        self.choice = gui.add_dropdown("Plot", names)
        ctx.on_change(self.choice, self.add)
        self.clear = ctx.add_button("Clear plots", self.remove)
        self.clear.visible = False
        self._folder = gui.add_folder(None)

    def add(self, name: str) -> None:
        """Plot a quantity."""
        if name not in self._known or name in self.plots:
            return
        quantity = self._known[name]
        count = min(len(quantity.read(self._ctx.lab.snapshot)), len(COLORS))
        label = f"{name} [{quantity.unit}]" if quantity.unit else name
        with self._folder:
            plot = LinePlot(
                self._ctx.gui,
                label,
                [str(i) for i in range(count)],
                height=150,
                x_label="Time [s]",
                least=_LEAST,
            )
        self.plots[name] = plot, quantity, deque()
        self.clear.visible = True

    def remove(self) -> None:
        """Remove all plots."""
        for plot, *_ in self.plots.values():
            plot.remove()
        self.plots.clear()
        self.clear.visible = False
        self.choice.value = self.choice.options[0]

    def renew(self) -> list[str]:
        """Keep the plots of quantities that the new world has, with the same unit and size."""
        self._known = {q.name: q for q in quantities(self._ctx.lab.model)}
        self.choice.options = ("choose a quantity", *self._known)
        snapshot = self._ctx.lab.snapshot
        gone = []
        for name, (plot, before, history) in list(self.plots.items()):
            now = self._known.get(name)
            if now is not None and now.unit == before.unit:
                size = now.read(snapshot)[: len(COLORS)].shape
                if not history or history[-1][1].shape == size:
                    self.plots[name] = plot, now, history
                    continue
            plot.remove()
            del self.plots[name]
            gone.append(f"the plot '{name}' is gone")
        self.clear.visible = bool(self.plots)
        return gone

    def update(self, snapshot: Snapshot) -> None:
        """Add a state to the plots, and draw them."""
        for plot, quantity, history in list(self.plots.values()):
            if history and snapshot.time < history[-1][0]:
                history.clear()
            if history and snapshot.time == history[-1][0]:
                continue
            history.append((snapshot.time, quantity.read(snapshot)[: len(COLORS)].copy()))
            while history[0][0] < snapshot.time - _HISTORY_S:
                history.popleft()
            if len(history) > 1:
                times = np.array([time for time, _ in history])
                plot.draw(times, *np.array([row for _, row in history]).T)
