"""Small plots over MuJoCo's window."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import mujoco
import numpy as np


@dataclass(frozen=True)
class PlotCfg:
    """Layout and contents of plots."""

    history: int = 300
    """Number of steps that a plot shows; MuJoCo's figures hold at most 1000."""
    p_lo: float = 2.0
    """Percentile of the values that is the lower end of the y axis [%]."""
    p_hi: float = 98.0
    """Percentile of the values that is the upper end of the y axis [%]."""
    pad: float = 0.25
    """Margin below and above the values, as a share of the range."""
    min_span: float = 1e-6
    """Smallest range of the y axis."""
    init_yrange: tuple[float, float] = (-0.01, 0.01)
    """Range of the y axis before there are values."""
    grid_size: tuple[int, int] = (3, 4)
    """Grid lines along x and y."""
    max_viewports: int = 12
    """Largest number of plots."""
    min_rows_per_col: int = 4
    max_rows_per_col: int = 6
    plot_strip_fraction: float = 1 / 3
    """Share of the window's width for plots."""
    background_alpha: float = 0.5
    """Opacity of the background."""


def compute_viewports(num_plots: int, rect: mujoco.MjrRect, cfg: PlotCfg) -> list[mujoco.MjrRect]:
    """Place plots in columns at the right of a window, from the top.

    Args:
        num_plots: number of plots; those beyond `cfg.max_viewports` are left out.
        rect: the window [pixel].
        cfg: layout of the plots.
    """
    count = min(num_plots, cfg.max_viewports)
    if count <= 0 or rect.width <= 0 or rect.height <= 0:
        return []
    rows = min(max(count, cfg.min_rows_per_col), cfg.max_rows_per_col)
    columns = -(-count // rows)
    width = int(rect.width * cfg.plot_strip_fraction) // columns
    height = rect.height // rows
    left = rect.left + rect.width - columns * width
    top = rect.bottom + rect.height
    return [
        mujoco.MjrRect(left + i // rows * width, top - (i % rows + 1) * height, width, height)
        for i in range(count)
    ]


def make_empty_figure(
    title: str,
    grid_size: tuple[int, int],
    yrange: tuple[float, float],
    history: int,
    alpha: float,
) -> mujoco.MjvFigure:
    """Create a figure of one line without points."""
    figure = mujoco.MjvFigure()
    mujoco.mjv_defaultFigure(figure)
    figure.title = title
    figure.gridsize[:] = grid_size
    figure.range[0][:] = -history, 0.0
    figure.range[1][:] = yrange
    figure.figurergba[:] = 0.0, 0.0, 0.0, alpha
    figure.linergb[0][:] = 0.3, 0.7, 1.0
    figure.flg_extend = 0
    return figure


class TermPlots:
    """A plot for each of some terms.

    Args:
        names: names of the terms, in the order of the values in `update`.
        cfg: layout and contents of plots.
    """

    def __init__(self, names: list[str], cfg: PlotCfg) -> None:
        self._cfg = cfg
        self._histories = [deque(maxlen=cfg.history) for _ in names[: cfg.max_viewports]]
        self.figures = [
            make_empty_figure(
                name, cfg.grid_size, cfg.init_yrange, cfg.history, cfg.background_alpha
            )
            for name in names[: cfg.max_viewports]
        ]

    def update(self, values: list[float]) -> None:
        """Add the last value of each term."""
        for figure, history, value in zip(self.figures, self._histories, values, strict=False):
            history.append(float(np.nan_to_num(value)))
            count = len(history)
            line = figure.linedata[0]
            line[0 : 2 * count : 2] = np.arange(1 - count, 1)
            line[1 : 2 * count : 2] = history
            figure.linepnt[0] = count
            figure.range[1][:] = self._range(history)

    def clear(self) -> None:
        """Clear the histories."""
        for figure, history in zip(self.figures, self._histories, strict=True):
            history.clear()
            figure.linepnt[0] = 0

    def _range(self, history: deque[float]) -> tuple[float, float]:
        """Return the range of a plot: most of the history, with margins."""
        cfg = self._cfg
        low, high = np.percentile(history, (cfg.p_lo, cfg.p_hi))
        span = max(high - low, cfg.min_span)
        middle = (low + high) / 2
        return middle - span * (0.5 + cfg.pad), middle + span * (0.5 + cfg.pad)
