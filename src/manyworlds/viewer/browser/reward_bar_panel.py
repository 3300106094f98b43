"""Bars that show the contribution of each reward term."""

from __future__ import annotations

import html
import warnings
from collections import deque
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import viser

_MEAN_SECONDS = 0.5
_PLUS = "#2f9e44"
_MINUS = "#e03131"


class RewardBarPanel:
    """One bar per term: its mean over the last half second, positive to the right in green.

    Args:
        server: server of the page; bars are in its present GUI container.
        term_names: names of the terms, in the order of the values in `update`.
        update_dt: time between two updates [s].
        max_terms: largest number of bars; more of them make the page slow.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        term_names: list[str],
        update_dt: float,
        max_terms: int = 20,
    ) -> None:
        if len(term_names) > max_terms:
            warnings.warn(
                f"{len(term_names)} reward terms exceed max_terms={max_terms}: the bars show the "
                "first ones only. Raise ViewerConfig.reward_bar_max_terms to see more.",
                UserWarning,
                stacklevel=2,
            )
        self.term_names = term_names[:max_terms]
        self._histories: deque[np.ndarray] = deque(maxlen=max(round(_MEAN_SECONDS / update_dt), 1))
        # The scale of the bars never shrinks, so that changes are visible.
        self._scale = 0.0
        self._html = server.gui.add_html("")
        self._show(np.zeros(len(self.term_names)))

    def update(self, terms: list[tuple[str, np.ndarray]]) -> None:
        """Add the last value of each term."""
        values = [float(np.ravel(value)[0]) for _, value in terms[: len(self.term_names)]]
        self._histories.append(np.nan_to_num(np.array(values)))
        self._show(np.mean(self._histories, axis=0))

    def clear_histories(self) -> None:
        """Clear the histories."""
        self._histories.clear()
        self._scale = 0.0
        self._show(np.zeros(len(self.term_names)))

    def cleanup(self) -> None:
        """Remove the bars."""
        self._html.remove()

    def _show(self, means: np.ndarray) -> None:
        """Draw a bar for each term."""
        self._scale = max(self._scale, float(np.abs(means).max(initial=0.0)))
        rows = [
            _row(name, value, self._scale)
            for name, value in zip(self.term_names, means, strict=True)
        ]
        self._html.content = (
            '<div style="padding:.25em 1em .5em;font-size:.8em;display:grid;line-height:1.5;'
            "grid-template-columns:minmax(0,9em) 1fr 4em;gap:.1em .6em;align-items:center;"
            f'font-variant-numeric:tabular-nums">{"".join(rows)}</div>'
        )


def _row(name: str, value: float, scale: float) -> str:
    """Return HTML for the bar of a term, to the right of the middle or to the left."""
    share = 0.0
    if scale > 0:
        share = 50.0 * abs(value) / scale
    left = 50.0
    color = _PLUS
    if value < 0:
        left = 50.0 - share
        color = _MINUS
    name = html.escape(name)
    return (
        '<div style="overflow:hidden;text-overflow:ellipsis;white-space:nowrap" '
        f'title="{name}">{name}</div>'
        '<div style="position:relative;height:.7em;background:rgba(128,128,128,.12);'
        'border-radius:2px"><div style="position:absolute;top:0;bottom:0;border-radius:2px;'
        f'left:{left:.1f}%;width:{share:.1f}%;background:{color}"></div></div>'
        f'<div style="text-align:right">{value:+.3f}</div>'
    )
