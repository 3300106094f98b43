"""Plots of terms over time."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import viser

_SHOWN_AT_FIRST = 3
_HEIGHT = 110
_COLOR = "#2684ff"


class ViserTermPlotter:
    """A small plot for each term that is chosen in the page.

    Args:
        server: where to draw, in the present GUI container.
        term_names: the terms, in the order in which `update` is given them.
        name: what the terms are, for labels.
        history_length: how many updates a plot shows.
        env_idx: the world whose terms are shown at first.
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
        self._plots: dict[str, Any] = {}
        self._boxes: dict[str, Any] = {}
        gui = server.gui
        for i, term in enumerate(term_names):
            self._plots[term] = gui.add_uplot(
                (np.zeros(2), np.zeros(2)),
                ({}, {"label": term, "stroke": _COLOR, "width": 1.5}),
                title=term,
                height=_HEIGHT,
                scales={"x": {"time": False}},
                axes=({"show": False}, {"size": 48}),
                legend={"show": False},
                visible=i < _SHOWN_AT_FIRST,
            )
        self._folder = gui.add_folder(f"{name} plots", expand_by_default=False)
        with self._folder:
            for term in term_names:
                box = gui.add_checkbox(term, self._plots[term].visible)
                box.on_update(lambda event, term=term: self._toggle(term, event.target.value))
                self._boxes[term] = box

    def update_env_idx(self, env_idx: int) -> None:
        """Show another world's terms from here on."""
        if env_idx != self.env_idx:
            self.env_idx = env_idx
            self.clear_histories()

    def update(self, terms: list[tuple[str, np.ndarray]]) -> None:
        """Take in the last value of each term, and draw the plots that are shown."""
        self._updates += 1
        for term, value in terms:
            self._histories[term].append(float(np.ravel(value)[0]))
        for term, plot in self._plots.items():
            if plot.visible:
                self._draw(term)

    def clear_histories(self) -> None:
        """Forget what was taken in."""
        self._updates = 0
        for term, history in self._histories.items():
            history.clear()
            self._draw(term)

    def cleanup(self) -> None:
        """Take the plots away."""
        for handle in (*self._plots.values(), self._folder):
            handle.remove()

    def _toggle(self, term: str, visible: bool) -> None:
        self._plots[term].visible = visible
        self._draw(term)

    def _draw(self, term: str) -> None:
        values = np.nan_to_num(np.array(self._histories[term]))
        steps = np.arange(self._updates - len(values), self._updates, dtype=np.float64)
        self._plots[term].data = (steps, values)
