"""Plots of the progress of a training run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manyworlds.rl.progress import EditRecord, IterationRecord, curve, training_minutes
from manyworlds.utils.figures import COLORS, new_figure, save_png, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = 3
_LONGEST = 90
"""Length of an edit's text below a plot [characters]."""
_TIME = "training time [min]"


def plot_learning_curve(
    records: Sequence[IterationRecord], path: Path, edits: Sequence[EditRecord] = ()
) -> Path:
    """Plot mean return and speed over training time; return the path of the PNG.

    Args:
        records: the iterations.
        path: the file.
        edits: edits of the run, each of which is a numbered line with its text below.
    """
    figure = new_figure(7.2, 4.2)
    minutes = training_minutes(records)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    plot_line(top, minutes, curve(records, "mean_return"), color=COLORS[0], lw=2)
    top.set_ylabel("mean return")
    speed = [record.steps_per_s / 1000 for record in records]
    plot_line(bottom, minutes, speed, color=COLORS[1], lw=1.2)
    bottom.set_ylim(bottom=0)
    bottom.set(ylabel="1000 control steps/s", xlabel=_TIME)
    for axes in (top, bottom):
        axes.set_xlim(left=0)
        style_axes(axes)
    draw_edits((top, bottom), records, edits)
    return save_png(figure, path)


def draw_edits(
    axes: Sequence[Axes], records: Sequence[IterationRecord], edits: Sequence[EditRecord]
) -> None:
    """Draw a line over training time for each edit, numbered in the first axes.

    Args:
        axes: axes over training time, whose first gets the numbers, and whose last the texts.
        records: the iterations.
        edits: the edits.
    """
    iterations = [record.iteration for record in records]
    ends = dict(zip(iterations, training_minutes(records), strict=True))
    shown = [(i, edit) for i, edit in enumerate(edits, 1) if edit.after in ends]
    for _, edit in shown:
        for each in axes:
            each.axvline(ends[edit.after], color="0.4", lw=0.8, ls=":")
    width = 0.03 * max(ends.values(), default=0.0)
    for time, label in _labels([(i, ends[edit.after]) for i, edit in shown], width):
        place = {"xy": (time, 1.0), "xycoords": axes[0].get_xaxis_transform()}
        axes[0].annotate(f" {label}", fontsize=8, color="0.3", va="top", **place)
    if shown:
        lines = []
        for i, edit in shown:
            text = edit.text
            if len(text) > _LONGEST:
                text = f"{text[: _LONGEST - 4]} ..."
            lines.append(f"{i}  after {edit.after}: {text}")
        axes[-1].annotate(
            "\n".join(lines),
            (0.0, -0.75),
            xycoords="axes fraction",
            fontsize=8,
            color="0.3",
            va="top",
            parse_math=False,
            annotation_clip=False,
        )


def _labels(numbered: Sequence[tuple[int, float]], width: float) -> list[tuple[float, str]]:
    """Return the times of labels, each with one number, or with several that are close together.

    Args:
        numbered: number and time of each line, in the order of time.
        width: least time between labels.
    """
    groups: list[list[tuple[int, float]]] = []
    for number, time in numbered:
        if groups and time - groups[-1][0][1] < width:
            groups[-1].append((number, time))
        else:
            groups.append([(number, time)])
    labels = []
    for group in groups:
        first, _ = group[0]
        last, time = group[-1]
        label = str(first)
        if last > first:
            label = f"{first}-{last}"
        labels.append((time, label))
    return labels


def plot_values(records: Sequence[IterationRecord], keys: Sequence[str], path: Path) -> Path:
    """Plot values over training time, each in axes of its own; return the path of the PNG.

    Args:
        records: the iterations.
        keys: names of values, as `curve` takes them.
        path: the file.
    """
    rows = math.ceil(len(keys) / _COLUMNS)
    figure = new_figure(9.6, 1.8 * rows + 0.3)
    minutes = training_minutes(records)
    grid = figure.subplots(rows, _COLUMNS, sharex=True, squeeze=False)
    for i, axes in enumerate(grid.flat):
        if i >= len(keys):
            axes.axis("off")
            continue
        plot_line(axes, minutes, curve(records, keys[i]), color=COLORS[0], lw=1.4)
        axes.set_title(keys[i].split("/", 1)[-1], fontsize=9, loc="left", parse_math=False)
        axes.tick_params(labelsize=8)
        axes.locator_params(axis="x", nbins=4)
        axes.set_xlim(left=0)
        style_axes(axes)
        if i + _COLUMNS >= len(keys):
            axes.tick_params(labelbottom=True)
            axes.set_xlabel(_TIME, fontsize=8)
    return save_png(figure, path)


def plot_shares(records: Sequence[IterationRecord], path: Path) -> Path:
    """Plot the shares of time of physics, managers and learner; return the path of the PNG."""
    figure = new_figure(7.2, 2.4)
    axes = figure.subplots()
    parts = [record for record in records if record.shares]
    names = list(parts[0].shares)
    seconds = np.array([[r.shares[name] * r.time for name in names] for r in parts])
    milliseconds_per_step = 1000.0 * seconds / [[r.steps_per_s * r.time / 1000.0] for r in parts]
    minutes = zip(training_minutes(records), records, strict=True)
    axes.stackplot(
        [t for t, record in minutes if record.shares],
        milliseconds_per_step.T,
        labels=[f"{n}, {100 * s:.0f} %" for n, s in mean_shares(parts).items()],
        colors=COLORS,
        alpha=0.85,
    )
    axes.set(xlabel=_TIME, ylabel="ms per 1000 steps")
    axes.margins(x=0)
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    style_axes(axes)
    return save_png(figure, path)


def mean_shares(records: Sequence[IterationRecord]) -> dict[str, float]:
    """Return the shares of the whole time of physics, managers and learner.

    Records of older versions, which have no shares, do not count.
    """
    parts = [record for record in records if record.shares]
    whole = sum(record.time for record in parts)
    seconds: dict[str, float] = {}
    for record in parts:
        for name, share in record.shares.items():
            seconds[name] = seconds.get(name, 0.0) + share * record.time
    return {name: part / whole for name, part in seconds.items()}


def plot_line(axes: Axes, x: Sequence[float], y: Sequence[float], **style: Any) -> None:
    """Plot the values that are finite; a single one is a dot."""
    found = np.isfinite(y)
    if found.sum() == 1:
        style["marker"] = "o"
    axes.plot(np.array(x)[found], np.array(y)[found], **style)
