"""Pages as HTML and Markdown: escaping, tables and files."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from manyworlds.utils.page import HtmlPage, MarkdownPage

NASTY = "<script>alert('x')</script> | `a` *b* [c](d) ```"


class Reader(HTMLParser):
    """Reader of tags and text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        """Keep a tag."""
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        """Keep text."""
        self.text += data


def fill(page, tmp_path) -> None:
    """Add each kind of block."""
    picture, film = tmp_path / "in" / "picture.png", tmp_path / "in" / "film.mp4"
    picture.parent.mkdir()
    picture.write_bytes(b"picture")
    film.write_bytes(b"film")
    page.heading(NASTY)
    page.text(NASTY)
    page.table((NASTY, "n"), [(NASTY, 1.5), (NASTY, 2)])
    page.code(NASTY, "all")
    page.media(picture, NASTY)
    page.media(film, NASTY)


def test_html_contains_everything_escaped(tmp_path):
    """Write one file, with text as it is and without its tags."""
    page = HtmlPage(NASTY)
    fill(page, tmp_path)
    page.write(tmp_path / "new" / "page.html")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["page.html"]
    text = (tmp_path / "new" / "page.html").read_text()
    reader = Reader()
    reader.feed(text)
    tags = [tag for tag, _ in reader.tags]
    assert "script" not in tags and reader.text.count(NASTY) == 8
    sources = [attrs["src"] for tag, attrs in reader.tags if tag in ("img", "video")]
    assert sources == ["data:image/png;base64,cGljdHVyZQ==", "data:video/mp4;base64,ZmlsbQ=="]
    assert [attrs.get("class") for tag, attrs in reader.tags if tag == "td"] == [None, "number"] * 2


def test_markdown_has_its_files_beside_it(tmp_path):
    """Write pictures beside the page; show text as it is when it is rendered."""
    page = MarkdownPage(NASTY)
    fill(page, tmp_path)
    page.write(tmp_path / "my page.md")
    folder = tmp_path / "my page_files"
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == {
        "picture.png": b"picture",
        "film.mp4": b"film",
    }
    text = (tmp_path / "my page.md").read_text()
    assert "](my%20page_files/picture.png)" in text and "](my%20page_files/film.mp4)" in text
    assert f"\n````text\n{NASTY}\n````\n" in text
    markdown = pytest.importorskip("markdown_it", reason="part of rich")
    shown = markdown.MarkdownIt().enable("table").render(text)
    reader = Reader()
    reader.feed(shown)
    tags = [tag for tag, _ in reader.tags]
    assert "script" not in tags and "em" not in tags and tags.count("tr") == 3
    assert reader.text.count("<script>alert('x')</script> | `a` *b* [c](d) ```") >= 6
