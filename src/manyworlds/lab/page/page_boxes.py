"""Boxes of the page that scripts of its own make: viser does not tell when a key goes up."""

from __future__ import annotations

import functools
import html
from pathlib import Path


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
