"""Figures in the style of this project, drawn without a window and written as small PNG files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from manyworlds.utils.extras import require_extra
from manyworlds.utils.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = ("#29548f", "#db8c28", "#4b8f4b", "#b0413e", "#7b5aa6", "#4f8f97", "#8a6d3b", "#777777")
_PNG_COLORS = 128


def new_figure(width: float, height: float, dpi: int = 150) -> Figure:
    """Make an empty figure.

    Args:
        width: width [inches].
        height: height [inches].
        dpi: resolution [pixels per inch].

    Raises:
        MissingExtraError: the extra 'train' is not installed.
    """
    require_extra("matplotlib", "train")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=dpi, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def style_axes(axes: Axes) -> None:
    """Remove the frame except for its left and lower lines, and draw a faint grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)


def save_png(figure: Figure, path: Path) -> Path:
    """Write a figure as a PNG of few colors, completely or not at all; return its path."""
    from PIL import Image

    figure.canvas.draw()  # type: ignore[attr-defined]
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]  # type: ignore[attr-defined]
    image = Image.fromarray(np.ascontiguousarray(pixels))
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as temporary:
        image.quantize(_PNG_COLORS, dither=Image.Dither.NONE).save(temporary, "PNG", optimize=True)
    return path
