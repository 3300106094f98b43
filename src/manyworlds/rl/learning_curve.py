"""Plot of the progress of training."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from manyworlds.rl.progress import IterationRecord
from manyworlds.utils.extras import require_extra
from manyworlds.utils.files import atomic_path


def plot_learning_curve(records: Sequence[IterationRecord], path: Path) -> Path:
    """Plot mean return and speed over training time; return the path of the PNG."""
    require_extra("matplotlib", "train")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    seconds = list(accumulate(record.collect_time + record.learn_time for record in records))
    returns = [
        (t, r.mean_return)
        for t, r in zip(seconds, records, strict=True)
        if r.mean_return is not None
    ]
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    top.plot([t for t, _ in returns], [value for _, value in returns], color="#29548f", lw=2)
    top.set_ylabel("mean return")
    bottom.plot(seconds, [r.steps_per_s / 1000 for r in records], color="#db8c28", lw=1.2)
    bottom.set_ylim(bottom=0)
    bottom.set_ylabel("k env-steps/s")
    bottom.set_xlabel("training time [s]")
    for axes in (top, bottom):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=150)
    return path
