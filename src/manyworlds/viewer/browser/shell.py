"""HTML around viser's page: its title, icon, styles, and a script that tells when it has ended."""

from __future__ import annotations

import html
import json
import secrets
from pathlib import Path

from manyworlds.utils.extras import require_extra

NEWS = "/lab-news"
"""Path of the state of the page, for which its script asks twice a second."""
_TITLE = "<title>Viser</title>"
_ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E"
    "%3Crect width='32' height='32' rx='7' fill='%231971c2'/%3E"
    "%3Ccircle cx='11' cy='20' r='6' fill='%23fff'/%3E"
    "%3Ccircle cx='22' cy='11' r='4.5' fill='%2374c0fc'/%3E"
    "%3Ccircle cx='24' cy='24' r='2.5' fill='%23a5d8ff'/%3E%3C/svg%3E"
)


class Shell:
    """What a browser loads before viser's program runs, and the state that it asks for.

    Args:
        noun: what serves the page, for messages: `lab`, `training`.

    Raises:
        AttributeError: the HTML of this viser is another one.
    """

    def __init__(self, noun: str) -> None:
        self.title = "manyworlds"
        """Title of the browser's tab."""
        self._noun = noun
        self._start = secrets.token_hex(8)
        viser = require_extra("viser", "lab")
        built = Path(str(viser.__file__)).with_name("client") / "build" / "index.html"
        self._page = built.read_text(encoding="utf-8")
        if self._page.count(_TITLE) != 1:
            raise AttributeError(f"{built} has no title")

    def page(self) -> str:
        """Return the HTML of the page."""
        here = Path(__file__)
        style = here.with_name("shell.css").read_text(encoding="utf-8")
        script = here.with_name("shell.js").read_text(encoding="utf-8")
        head = (
            f"<title>{html.escape(self.title)}</title><style>{style}</style>"
            f"<script>{script}({json.dumps(self._noun)});</script>"
        )
        first, _, rest = self._page.partition(_TITLE)
        icon, quote, after = first.partition('href="data:')
        if quote:
            first = f'{icon}href="{_ICON}"{after.partition(chr(34))[2]}'
        return first + head + rest

    def news(self) -> str:
        """Return the state as JSON: which start of the program this is, and the title."""
        return json.dumps({"start": self._start, "title": self.title})
