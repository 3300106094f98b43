"""Places of new things: free ones, those of clicks in the view, and given positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict

import numpy as np

from manyworlds.lab.page.page_context import PageContext

FREE = "free place"
CLICK = "click in the view"
POSITION = "position"
_PLACES: tuple[str, ...] = (FREE, CLICK, POSITION)


class Place(TypedDict, total=False):
    """Place of something new, as fields of verbs; empty for a free place."""

    near: list[float]
    """Place along x and y [m] at which, or beside which, a free one is chosen."""
    pos: tuple[float, float, float]
    """Position [m]."""


class Placing:
    """Choice of where new things go.

    Args:
        ctx: context of the page.
        told: shows what an action returns, or its error.
    """

    def __init__(self, ctx: PageContext, told: Callable[[Callable[[], str]], object]) -> None:
        self._ctx = ctx
        self._told = told
        gui = ctx.gui
        self.where = gui.add_dropdown(
            "Where",
            _PLACES,
            hint="On the ground, beside what is there; where you click; or as given.",
        )
        self.position = gui.add_vector3("Position [m]", (0.0, 0.0, 0.5), step=0.1, visible=False)
        self.mark = gui.add_html("")
        ctx.on_change(self.where, self._choose)

    def put(self, add: Callable[[Place], str]) -> str:
        """Add something now, or with the next click in the view; return what was done.

        Args:
            add: adds it at a place, and returns what was done.
        """
        if self.where.value == FREE:
            return add({})
        if self.where.value == POSITION:
            return add({"pos": self.position.value})
        self._ctx.aimed = lambda point: self._put_at(add, point)
        self.mark.content = "<i data-lab-aim hidden></i>"  # see `shell.css`
        return "Click in the view where it is to stand."

    def _put_at(self, add: Callable[[Place], str], point: np.ndarray) -> None:
        self.mark.content = ""
        self._told(lambda: add({"near": point[:2].tolist()}))

    def _choose(self, where: str) -> None:
        self.position.visible = where == POSITION
        self._ctx.aimed = None
        self.mark.content = ""
