"""Read-outs of joints and sensors, and plots of what is chosen."""

from __future__ import annotations

import html
import math
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from manyworlds.lab.page.page_context import PageContext
from manyworlds.lab.page.quantities import Quantity, joint_axis_unit, quantities, sensors
from manyworlds.lab.snapshot import Snapshot
from manyworlds.viewer.browser.overlay_shapes import hinges_and_slides

_HISTORY_S = 10.0
_MOST_SERIES = 6
_LEAST = 0.005  # what a plot's axis tells apart, which has three decimals
_COLORS = ("#2684ff", "#e8590c", "#2f9e44", "#9c36b5", "#c92a2a", "#5c677d")
_TABLE = (
    '<div style="max-height:15em;overflow:auto;padding:.2em .4em">'
    '<table style="width:100%;border-spacing:0;font-size:.8em;font-variant-numeric:tabular-nums">'
)


class PlotPart:
    """Plots of the last ten seconds of what is chosen.

    Args:
        ctx: of the page.
    """

    period = 0.1

    def __init__(self, ctx: PageContext) -> None:
        self._ctx = ctx
        self._known = {q.name: q for q in quantities(ctx.lab.world.model)}
        self.plots: dict[str, tuple[Any, Quantity, deque[tuple[float, np.ndarray]]]] = {}
        gui = ctx.gui
        names = ("choose what to plot", *self._known)
        self.choice = gui.add_dropdown("Plot", names)
        ctx.on_change(self.choice, self.add)
        self.clear = ctx.on_click(gui.add_button("Clear plots", visible=False), self.remove)
        self._folder = gui.add_folder(None)

    def add(self, name: str) -> None:
        """Plot a quantity."""
        if name not in self._known or name in self.plots:
            return
        quantity = self._known[name]
        count = min(len(quantity.read(self._ctx.lab.snapshot)), _MOST_SERIES)
        label = f"{name} [{quantity.unit}]" if quantity.unit else name
        series = [{"label": str(i), "stroke": _COLORS[i], "width": 1.5} for i in range(count)]
        with self._folder:
            plot = self._ctx.gui.add_uplot(
                tuple(np.zeros(2) for _ in range(count + 1)),
                ({"label": "Time [s]"}, *series),
                title=label,
                height=150,
                scales=_scales(np.zeros(1)),
                axes=(
                    {"label": "Time [s]", "labelSize": 16, "size": 30},
                    {"size": 52, "space": 20},
                ),
                legend={"show": count > 1},
            )
        self.plots[name] = plot, quantity, deque()
        self.clear.visible = True

    def remove(self) -> None:
        """Take all plots away."""
        for plot, *_ in self.plots.values():
            plot.remove()
        self.plots.clear()
        self.clear.visible = False
        self.choice.value = self.choice.options[0]

    def update(self, snapshot: Snapshot) -> None:
        """Take in a state, and draw the plots."""
        for plot, quantity, history in list(self.plots.values()):
            if history and snapshot.time < history[-1][0]:
                history.clear()
            if history and snapshot.time == history[-1][0]:
                continue
            history.append((snapshot.time, quantity.read(snapshot)[:_MOST_SERIES].copy()))
            while history[0][0] < snapshot.time - _HISTORY_S:
                history.popleft()
            if len(history) > 1:
                times = np.array([time for time, _ in history])
                values = np.nan_to_num(np.array([row for _, row in history])).T
                scales = _scales(values)
                if plot.scales != scales:
                    plot.scales = scales
                plot.data = (times, *values)


class ReadoutPart:
    """Numbers of all joints and sensors of the selected robot.

    Args:
        ctx: of the page.
    """

    period = 0.25

    def __init__(self, ctx: PageContext) -> None:
        model = ctx.lab.world.model
        self._ctx, self._model = ctx, model
        self._axes, self._sensors = hinges_and_slides(model).tolist(), sensors(model)
        self._names = [model.joint(joint).name or f"joint {joint}" for joint in self._axes]
        self._folders = [ctx.gui.add_folder(title) for title in ("Joints", "Sensors")]
        with self._folders[0]:
            self.joints = ctx.gui.add_html("")
        with self._folders[1]:
            self.sensors = ctx.gui.add_html("")

    def update(self, snapshot: Snapshot) -> None:
        """Show the numbers."""
        prefix = self._ctx.lab.world.robots.get(self._ctx.robot, "")
        q = snapshot.qpos[self._model.jnt_qposadr[self._axes]]
        v = snapshot.qvel[self._model.jnt_dofadr[self._axes]]
        rows = []
        for name, joint, position, velocity in zip(self._names, self._axes, q, v, strict=True):
            if name.startswith(prefix):
                unit = joint_axis_unit(self._model, joint)
                values = (_number(position), _number(velocity))
                rows.append((name.removeprefix(prefix), f"{unit}, {unit}/s", *values))
        told = [
            (s.name.removeprefix(prefix), s.unit, " ".join(map(_number, s.read(snapshot).tolist())))
            for s in self._sensors
            if s.name.startswith(prefix)
        ]
        self.joints.content, self.sensors.content = _table(rows), _table(told)
        for folder, lines in zip(self._folders, (rows, told), strict=True):
            folder.visible = bool(lines)


def _scales(values: np.ndarray) -> dict[str, Any]:
    """What hardly changes would have the same number at each tick: show a little more around it."""
    low, high = float(values.min()), float(values.max())
    scales: dict[str, Any] = {"x": {"time": False}}
    if high - low < 2 * _LEAST:
        below, above = math.floor(low / _LEAST) - 1, math.ceil(high / _LEAST) + 1
        scales["y"] = {"range": (below * _LEAST, above * _LEAST)}
    return scales


def _number(value: float) -> str:
    # The sum makes a zero of what would be shown as -0.
    return f"{round(value, 3) + 0.0:.3f}" if abs(value) < 1000.0 else f"{value:.4g}"


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    lines = []
    for name, unit, *values in rows:
        cells = "".join(f'<td style="text-align:right">{html.escape(v)}</td>' for v in values)
        lines.append(
            f'<tr><td style="opacity:.65">{html.escape(name)}</td>{cells}'
            f'<td style="opacity:.65;padding-left:.5em">{html.escape(unit)}</td></tr>'
        )
    return f"{_TABLE}{''.join(lines)}</table></div>"
