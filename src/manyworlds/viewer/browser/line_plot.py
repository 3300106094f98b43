"""Line plots of pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import viser
    from viser import uplot

COLORS = ("#2684ff", "#e8590c", "#2f9e44", "#9c36b5", "#c92a2a", "#5c677d")
"""Colors of the lines of one plot, and thereby their largest number."""
_CURSOR = "lab-plots"
_HALF_NUMBER_PX = 8
"""Height of half a number at a tick, which may be at the edge of the plot [pixel]."""


class LinePlot:
    """A plot of lines over one axis.

    Args:
        gui: GUI of the page; the plot is in its present container.
        title: title over the plot.
        labels: labels of the lines; a legend shows them if there are several.
        height: height [pixel].
        x_label: label of the horizontal axis; None hides that axis.
        least: smallest range of the vertical axis, so that small changes are not magnified; 0
            allows any range.
        visible: whether the plot is shown at first.
    """

    def __init__(
        self,
        gui: viser.GuiApi,
        title: str,
        labels: Sequence[str],
        *,
        height: int,
        x_label: str | None = None,
        least: float = 0.0,
        visible: bool = True,
    ) -> None:
        self._least = least
        lines: list[uplot.Series] = [
            {"label": label, "stroke": color, "width": 1.5}
            for label, color in zip(labels, COLORS, strict=False)
        ]
        x_axis: uplot.Axis = {"show": False}
        below = _HALF_NUMBER_PX
        if x_label is not None:
            x_axis = {"label": x_label, "labelSize": 16, "size": 30}
            below = 0
        y_axis: uplot.Axis = {"size": 52, "space": 20}
        self.handle = gui.add_uplot(
            tuple(np.zeros(2) for _ in range(len(lines) + 1)),
            ({"label": x_label or ""}, *lines),
            title=title,
            height=height,
            scales=_scales(np.zeros(1), least),
            axes=(x_axis, y_axis),
            legend={"show": len(lines) > 1},
            # A pointer in one plot shows the same time in the others.
            cursor={"sync": {"key": _CURSOR}},
            padding=(_HALF_NUMBER_PX, 24, below, 0),
            visible=visible,
        )

    @property
    def visible(self) -> bool:
        """True if the plot is shown."""
        return self.handle.visible

    @visible.setter
    def visible(self, visible: bool) -> None:
        self.handle.visible = visible

    @property
    def data(self) -> tuple[np.ndarray, ...]:
        """Values along the horizontal axis and those of each line, of shape (n,) each."""
        return self.handle.data

    def draw(self, x: np.ndarray, *lines: np.ndarray) -> None:
        """Replace the lines; values that are not finite are replaced by finite numbers.

        Args:
            x: values along the horizontal axis, shape (n,).
            *lines: values of each line, shape (n,).
        """
        values = np.nan_to_num(np.array(lines, np.float64))
        scales = _scales(values, self._least)
        if self.handle.scales != scales:
            self.handle.scales = scales
        self.handle.data = (np.asarray(x, np.float64), *values)

    def remove(self) -> None:
        """Remove the plot from the page."""
        self.handle.remove()


def _scales(values: np.ndarray, least: float) -> dict[str, uplot.Scale]:
    """Return scales with margins: without them, all ticks of a nearly constant line are equal."""
    scales: dict[str, uplot.Scale] = {"x": {"time": False}}
    low = high = 0.0
    if values.size:
        low = float(values.min())
        high = float(values.max())
    if high - low < 2 * least:
        below = math.floor(low / least) - 1
        above = math.ceil(high / least) + 1
        scales["y"] = {"range": (below * least, above * least)}
    return scales
