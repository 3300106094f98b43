"""Pages of text, tables, pictures and films, as one HTML file or as Markdown with files beside it.

All text is escaped, so that a page may show what comes from files.
"""

from __future__ import annotations

import base64
import html
import mimetypes
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote

from manyworlds.utils.files import atomic_path, write_atomic

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1f2328; max-width: 62rem; margin: 2rem auto;
  padding: 0 1.5rem; }
h1 { margin-bottom: .3rem; }
h2 { border-bottom: 1px solid #d0d7de; padding-bottom: .3rem; margin-top: 2.5rem; }
h3 { margin: 1.6rem 0 .4rem; font-size: 1rem; }
img, video { max-width: 100%; display: block; margin: .6rem 0; }
pre { background: #f4f6f8; border-radius: 6px; padding: .8rem 1rem; font-size: .85rem;
  white-space: pre-wrap; overflow-wrap: anywhere; }
table { border-collapse: collapse; margin: .6rem 0; font-size: .92rem; }
th, td { border-bottom: 1px solid #e3e7eb; padding: .25rem 1.2rem .25rem 0; text-align: left;
  vertical-align: top; overflow-wrap: anywhere; }
td.number, th.number { text-align: right; }
summary { cursor: pointer; }
"""


class HtmlPage:
    """Page in one HTML file, which contains its pictures and films.

    Args:
        title: title of the page.
    """

    def __init__(self, title: str) -> None:
        self._title = html.escape(title)
        self._parts: list[str] = [f"<h1>{self._title}</h1>"]

    def heading(self, text: str, level: int = 2) -> None:
        """Add a heading."""
        self._parts.append(f"<h{level}>{html.escape(text)}</h{level}>")

    def text(self, text: str) -> None:
        """Add a paragraph."""
        self._parts.append(f"<p>{html.escape(text)}</p>")

    def link(self, text: str, address: str) -> None:
        """Add a paragraph with a link to another page."""
        self._parts.append(f'<p><a href="{html.escape(address)}">{html.escape(text)}</a></p>')

    def code(self, text: str, title: str = "") -> None:
        """Add preformatted text, which is folded if it has a title."""
        block = f"<pre>{html.escape(text)}</pre>"
        if title:
            block = f"<details><summary>{html.escape(title)}</summary>{block}</details>"
        self._parts.append(block)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Add a table; columns of numbers are right-aligned."""
        rows = list(rows)
        kinds = [' class="number"' if _is_numeric(rows, i) else "" for i in range(len(columns))]

        def line(cells: Sequence[object], tag: str) -> str:
            parts = zip(cells, kinds, strict=True)
            content = "".join(f"<{tag}{k}>{html.escape(str(c))}</{tag}>" for c, k in parts)
            return f"<tr>{content}</tr>"

        head = [line(columns, "th")] if any(columns) else []
        self._parts.append(
            "\n".join(["<table>", *head, *(line(r, "td") for r in rows), "</table>"])
        )

    def media(self, path: Path, text: str) -> None:
        """Add a picture or a film, with alternative text."""
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        data = f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"
        label = html.escape(text)
        if kind.startswith("video/"):
            options = "controls autoplay loop muted playsinline"
            self._parts.append(f'<video {options} aria-label="{label}" src="{data}"></video>')
        else:
            self._parts.append(f'<img alt="{label}" src="{data}">')

    def write(self, path: Path) -> None:
        """Write the file, completely or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        head = [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{self._title}</title><style>{_STYLE}</style></head><body>",
        ]
        write_atomic(path, "\n".join([*head, *self._parts, "</body></html>\n"]))


class MarkdownPage:
    """Page in a Markdown file; its pictures and films are in `<name>_files` beside it.

    Args:
        title: title of the page.
    """

    def __init__(self, title: str) -> None:
        self._parts: list[str | tuple[Path, str]] = [f"# {_markdown(title)}"]

    def heading(self, text: str, level: int = 2) -> None:
        """Add a heading."""
        self._parts.append(f"{'#' * level} {_markdown(text)}")

    def text(self, text: str) -> None:
        """Add a paragraph."""
        self._parts.append(_markdown(text))

    def link(self, text: str, address: str) -> None:
        """Add a paragraph with a link to another page."""
        self._parts.append(f"[{_markdown(text)}](<{address}>)")

    def code(self, text: str, title: str = "") -> None:
        """Add preformatted text, after its title if it has one."""
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
        if title:
            self.heading(title, 3)
        self._parts.append(f"{fence}text\n{text}\n{fence}")

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Add a table; columns of numbers are right-aligned."""
        rows = list(rows)
        rule = ["---:" if _is_numeric(rows, i) else "---" for i in range(len(columns))]
        lines = ([_markdown(str(c)) for c in cells] for cells in (columns, *rows))
        head, *body = (f"| {' | '.join(cells)} |" for cells in lines)
        self._parts.append("\n".join([head, f"|{'|'.join(rule)}|", *body]))

    def media(self, path: Path, text: str) -> None:
        """Add a picture or a film, with alternative text."""
        self._parts.append((path, text))

    def write(self, path: Path) -> None:
        """Write the file after those beside it, each completely or not at all."""
        folder = path.with_name(f"{path.stem}_files")
        folder.mkdir(parents=True, exist_ok=True)
        blocks = []
        for part in self._parts:
            if isinstance(part, tuple):
                source, text = part
                with atomic_path(folder / source.name) as temporary:
                    shutil.copyfile(source, temporary)
                place = quote(f"{folder.name}/{source.name}")
                part = f"[{_markdown(text)}]({place})"
                if source.suffix != ".mp4":  # a film, which Markdown can only link
                    part = f"!{part}"
            blocks.append(part)
        write_atomic(path, "\n\n".join(blocks) + "\n")


Page = HtmlPage | MarkdownPage


def _is_numeric(rows: Sequence[Sequence[object]], column: int) -> bool:
    return bool(rows) and all(isinstance(row[column], int | float) for row in rows)


def _markdown(text: str) -> str:
    """Escape text for one line of Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&!$])", r"\\\1", " ".join(text.split()))
