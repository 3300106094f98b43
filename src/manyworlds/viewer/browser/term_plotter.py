"""Plots of terms over time."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from manyworlds.viewer.browser.line_plot import LinePlot
from manyworlds.viewer.browser.widgets import on_change

if TYPE_CHECKING:
    import viser

_SHOWN_AT_FIRST = 3
_HEIGHT = 110


class ViserTermPlotter:
    """Small plots of the terms that are chosen on the page.

    Args:
        server: server of the page; plots are in its present GUI container.
        term_names: names of the terms, in the order of the values in `update`.
        name: kind of the terms, for labels.
        history_length: number of updates that a plot shows.
        env_idx: world whose terms are shown at first.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        term_names: list[str],
        name: str = "Reward",
        history_length: int = 150,
        env_idx: int = 0,
    ) -> None:
        self.term_names = term_names
        self.env_idx = env_idx
        self._histories: dict[str, deque[float]] = {
            term: deque(maxlen=history_length) for term in term_names
        }
        self._updates = 0
        self._plots: dict[str, LinePlot] = {}
        gui = server.gui
        for i, term in enumerate(term_names):
            visible = i < _SHOWN_AT_FIRST
            self._plots[term] = LinePlot(gui, term, [term], height=_HEIGHT, visible=visible)
        self._folder = gui.add_folder(f"{name} plots", expand_by_default=False)
        with self._folder:
            for term in term_names:
                box = gui.add_checkbox(term, self._plots[term].visible)
                on_change(box, lambda visible, term=term: self._toggle(term, visible))

    def update_env_idx(self, env_idx: int) -> None:
        """Show another world's terms from now on."""
        if env_idx != self.env_idx:
            self.env_idx = env_idx
            self.clear_histories()

    def update(self, terms: list[tuple[str, np.ndarray]]) -> None:
        """Add the last value of each term, and draw the plots that are shown."""
        self._updates += 1
        for term, value in terms:
            self._histories[term].append(float(np.ravel(value)[0]))
        for term, plot in self._plots.items():
            if plot.visible:
                self._draw(term)

    def clear_histories(self) -> None:
        """Clear the histories."""
        self._updates = 0
        for term, history in self._histories.items():
            history.clear()
            self._draw(term)

    def cleanup(self) -> None:
        """Remove the plots."""
        for handle in (*self._plots.values(), self._folder):
            handle.remove()

    def _toggle(self, term: str, visible: bool) -> None:
        self._plots[term].visible = visible
        self._draw(term)

    def _draw(self, term: str) -> None:
        values = np.array(self._histories[term])
        self._plots[term].draw(np.arange(self._updates - len(values), self._updates), values)
