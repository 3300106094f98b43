"""Curves of several training runs in one picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from manyworlds.rl.curves import plot_line
from manyworlds.rl.progress import (
    IterationRecord,
    control_steps,
    curve,
    curve_keys,
    read_progress,
    training_minutes,
)
from manyworlds.rl.run_folder import RunFolder
from manyworlds.utils.config import flatten
from manyworlds.utils.figures import COLORS, new_figure, save_png, style_axes
from manyworlds.validation.names import near_matches

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GRID = 200
_SHOWN_SETTINGS = 3
# Settings in which repetitions of a training may differ: seeds, names, and use of the machine.
_OWN_SETTINGS = (
    "env.seed",
    "agent.seed",
    "agent.run_name",
    "agent.experiment_name",
    "agent.resume",
    "agent.load_run",
    "agent.load_checkpoint",
    "env.sim.num_threads",
    "env.sim.nan_guard.output_dir",
)


@dataclass(frozen=True)
class RunCurves:
    """Progress and settings of a run."""

    name: str
    task: str
    seed: object
    settings: dict[str, object]
    """Settings by their paths, without those in which repetitions differ."""
    records: list[IterationRecord]

    @classmethod
    def of(cls, run: RunFolder) -> RunCurves:
        """Read a run.

        Raises:
            OSError: a file of the run is missing.
            ValueError: the run has no finished iteration, or a file is not valid.
        """
        records = read_progress(run.path, min_count=1)
        settings = flatten({"env": run.env_params(), "agent": run.agent_params()})
        seed = settings.get("agent.seed")
        for name in _OWN_SETTINGS:
            settings.pop(name, None)
        return cls(run.path.name, str(run.task), seed, settings, records)


def plot_comparison(runs: Sequence[RunCurves], keys: Sequence[str], path: Path) -> Path:
    """Plot values of runs over training time and over control steps.

    Runs of one task that differ in the seed only are drawn as thin lines, with their mean and the
    range from minimum to maximum where all of them have values.

    Args:
        runs: the runs.
        keys: names of values, as `manyworlds.rl.progress.curve` takes them.
        path: the PNG file.

    Returns:
        The path.

    Raises:
        ValueError: no run has a value of a key.
    """
    known = list(dict.fromkeys(key for run in runs for key in curve_keys(run.records)))
    for key in keys:
        if key not in known:
            raise ValueError(
                f"No run has values of '{key}'.{near_matches(key, known)} Available: "
                f"{', '.join(known)}."
            )
    groups = _groups(runs)
    colors = [COLORS[i % len(COLORS)] for i in range(len(groups))]
    figure = new_figure(10.0, 2.9 * len(keys) + 0.4 + 0.25 * len(groups))
    grid = figure.subplots(len(keys), 2, sharex="col", sharey="row", squeeze=False)
    for (by_time, by_steps), key in zip(grid, keys, strict=True):
        by_time.set_ylabel(key.replace("_", " "), parse_math=False)
        style_axes(by_time)
        style_axes(by_steps)
        for group, color in zip(groups, colors, strict=True):
            _draw(by_time, group, training_minutes, key, color)
            _draw(by_steps, group, control_steps, key, color)
    grid[-1][0].set_xlabel("training time [min]")
    grid[-1][1].set_xlabel("control steps of all worlds")
    handles = [grid[0][0].plot([], [], color=color, lw=2.2)[0] for color in colors]
    texts = [text.replace("$", r"\$") for text in _labels(groups)]
    figure.legend(handles, texts, loc="outside lower left", frameon=False, fontsize=8.5)
    return save_png(figure, path)


def _draw(
    axes: Axes,
    group: Sequence[RunCurves],
    positions: Callable[[Sequence[IterationRecord]], Sequence[float]],
    key: str,
    color: str,
) -> None:
    """Draw the curves of a group: one run, or repetitions with their mean and range."""
    curves = []
    for run in group:
        x = np.array(positions(run.records), float)
        y = np.array(curve(run.records, key))
        found = np.isfinite(y)
        if found.any():
            curves.append((x[found], y[found]))
    if not curves:
        return
    style = {"lw": 1.8}
    if len(group) > 1:
        style = {"lw": 0.7, "alpha": 0.5}
    for x, y in curves:
        plot_line(axes, x, y, color=color, markersize=4, **style)
    start = max(x[0] for x, _ in curves)
    end = min(x[-1] for x, _ in curves)
    if 1 < len(group) == len(curves) and start < end:
        grid = np.linspace(start, end, _GRID)
        values = np.array([np.interp(grid, x, y) for x, y in curves])
        axes.fill_between(grid, values.min(0), values.max(0), color=color, alpha=0.2, lw=0)
        axes.plot(grid, values.mean(0), color=color, lw=2.2)


def _groups(runs: Sequence[RunCurves]) -> list[list[RunCurves]]:
    """Put runs together that have the same task and settings and different seeds."""
    groups: list[list[RunCurves]] = []
    for run in runs:
        for group in groups:
            same = (run.task, run.settings) == (group[0].task, group[0].settings)
            if same and run.seed not in [other.seed for other in group]:
                group.append(run)
                break
        else:
            groups.append([run])
    return groups


def _labels(groups: Sequence[Sequence[RunCurves]]) -> list[str]:
    """Describe each group by task, run, seeds, and the settings in which groups of it differ."""
    labels = []
    for group in groups:
        first = group[0]
        others = [g[0].settings for g in groups if g[0].task == first.task]
        varied = []
        for name, value in first.settings.items():
            if any(name in other and other[name] != value for other in others):
                varied.append(f"{name} = {value}")
        if len(varied) > _SHOWN_SETTINGS:
            varied[_SHOWN_SETTINGS:] = [f"{len(varied) - _SHOWN_SETTINGS} more settings"]
        seeds = ", ".join(str(run.seed) for run in group)
        what = f"{first.task}, {first.name}, seed {seeds}"
        if len(group) > 1:
            what = f"{first.task}, seeds {seeds}: mean, and range from minimum to maximum"
            what += f" (first run: {first.name})"
        labels.append("; ".join([what, *varied]))
    return labels
