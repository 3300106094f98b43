"""Boxes of the page that scripts of its own make: viser does not tell when a key goes up."""

from __future__ import annotations

import functools
import html
from pathlib import Path

from manyworlds.lab.page.page_context import KeptPart

_LAST = 1e13  # order on the page


class BoxPart(KeptPart):
    """Part of a page with a box that a script of its own makes."""

    def _add_box(self, name: str, address: str) -> None:
        """Add the box.

        Args:
            name: name of the script's file without its suffix.
            address: address of the page's own WebSocket, see `DrivePart`.
        """
        self.html = self._ctx.gui.add_html(box_html(name, f'"{address}"'), order=_LAST)


def box_html(name: str, argument: str) -> str:
    """Return HTML that runs the script of a box in a browser, once however often it is built.

    Args:
        name: name of the script's file without its suffix.
        argument: argument of the script, as JavaScript.
    """
    # Scripts in viser's HTML do not run, but event handlers do.
    script = html.escape(f"{_script('page_boxes')}\n{_script(name)}({argument})")
    return f'<img src="data:," style="display:none" onerror="{script}">'


@functools.cache
def _script(name: str) -> str:
    return Path(__file__).with_name(f"{name}.js").read_text(encoding="utf-8").strip()
