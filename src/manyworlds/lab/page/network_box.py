"""Script of the page that talks to the lab's server: which program drives, and taking over."""

from __future__ import annotations

import functools
import html
from pathlib import Path


def network_html(port: int) -> str:
    """Return HTML that runs the script in a browser, once however often the page is built.

    Args:
        port: port of the lab's WebSocket.
    """
    # Scripts in viser's HTML do not run, but event handlers do.
    script = html.escape(f"{_script()}({port})")
    return f'<img src="data:," style="display:none" onerror="{script}">'


@functools.cache
def _script() -> str:
    return Path(__file__).with_suffix(".js").read_text().strip()
