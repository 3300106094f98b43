"""Curves of several training runs in one picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

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
    seed: Any
    settings: dict[str, Any]
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
        params = {"env": run.env_params(), "agent": run.agent_params()}
        settings = flatten(params)
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
    _check_keys(runs, keys)
    groups = _groups(runs)
    figure = new_figure(10.0, 2.9 * len(keys) + 0.4 + 0.25 * len(groups))
    grid = figure.subplots(len(keys), 2, sharex="col", sharey="row", squeeze=False)
    for row, key in zip(grid, keys, strict=True):
        row[0].set_ylabel(key.replace("_", " "), parse_math=False)
        for axes, positions in zip(row, (training_minutes, control_steps), strict=True):
            style_axes(axes)
            for group, color in zip(groups, _colors(len(groups)), strict=True):
                _draw(axes, group, positions, key, color)
    grid[-1][0].set_xlabel("training time [min]")
    grid[-1][1].set_xlabel("control steps of all worlds")
    handles = [grid[0][0].plot([], [], color=color, lw=2.2)[0] for color in _colors(len(groups))]
    texts = [text.replace("$", r"\$") for text in _labels(groups)]
    figure.legend(handles, texts, loc="outside lower left", frameon=False, fontsize=8.5)
    return save_png(figure, path)


def _draw(axes: Axes, group: Sequence[RunCurves], positions: Any, key: str, color: str) -> None:
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
    is_repeated = len(group) > 1
    for x, y in curves:
        marker = "o" if len(x) == 1 else None
        lw, alpha = (0.7, 0.5) if is_repeated else (1.8, 1.0)
        axes.plot(x, y, color=color, lw=lw, alpha=alpha, marker=marker, markersize=4)
    start = max(x[0] for x, _ in curves)
    end = min(x[-1] for x, _ in curves)
    if is_repeated and len(curves) == len(group) and start < end:
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
        varied = [
            f"{name} = {value}"
            for name, value in first.settings.items()
            if any(name in other and other[name] != value for other in others)
        ]
        if len(varied) > _SHOWN_SETTINGS:
            varied[_SHOWN_SETTINGS:] = [f"{len(varied) - _SHOWN_SETTINGS} more settings"]
        seeds = ", ".join(str(run.seed) for run in group)
        what = f"{first.task}, {first.name}, seed {seeds}"
        if len(group) > 1:
            what = f"{first.task}, seeds {seeds}: mean, and range from minimum to maximum"
            what += f" (first run: {first.name})"
        labels.append("; ".join([what, *varied]))
    return labels


def _check_keys(runs: Sequence[RunCurves], keys: Sequence[str]) -> None:
    known = list(dict.fromkeys(key for run in runs for key in curve_keys(run.records)))
    for key in keys:
        if key not in known:
            raise ValueError(
                f"No run has values of '{key}'.{near_matches(key, known)} Available: "
                f"{', '.join(known)}."
            )


def _colors(count: int) -> list[str]:
    return [COLORS[i % len(COLORS)] for i in range(count)]
