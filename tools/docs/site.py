"""Hook of MkDocs: pages that are made of files outside of `docs`, and links to them.

It needs MkDocs only where MkDocs calls it, so that tests check the site without it.
"""

from __future__ import annotations

import ast
import importlib
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
COPIES = {
    "index.md": "README.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
}
"""Pages that are copies of files of the project, by their paths below `docs`."""
EXAMPLES = "examples.md"
_LINK = re.compile(r"`[^`]*`|(\[(?:[^\[\]]|!?\[[^\]]*\]\([^)]*\))*\])\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def generated_pages() -> dict[str, str]:
    """Return the pages that are no files below `docs`, by their paths there."""
    pages = {page: (ROOT / source).read_text() for page, source in COPIES.items()}
    pages = {page: relink(text, COPIES[page], page) for page, text in pages.items()}
    return pages | {EXAMPLES: examples_page()}


def markdown_pages() -> dict[str, str]:
    """Return the text of each page, with links as on the site, by its path below `docs`."""
    pages = {path.relative_to(DOCS).as_posix(): path.read_text() for path in DOCS.rglob("*.md")}
    pages = {page: relink(text, f"docs/{page}", page) for page, text in pages.items()}
    return pages | generated_pages()


def examples_page() -> str:
    """Return a page with all examples and their code."""
    parts = [
        "# Examples\n\nEach example is one file in the folder `examples`, which the tests run. "
        "Below them are two [notebooks](#notebooks).\n"
    ]
    for path in sorted((ROOT / "examples").glob("*.py")):
        text = path.read_text()
        docstring = ast.get_docstring(ast.parse(text)) or ""
        title, _, rest = docstring.partition("\n\n")
        code = text[text.index('"""', 3) + 3 :].strip()
        parts.append(f"## {int(path.stem[:2])}. {title.rstrip('.')} {{ #{path.stem} }}\n\n{rest}\n")
        parts.append(f'```python title="{path.name}"\n{code}\n```\n')
    parts.append("## Notebooks\n\nBoth run in Jupyter and in Colab.\n")
    parts += [f"- `examples/{path.name}`" for path in sorted((ROOT / "examples").glob("*.ipynb"))]
    return "\n".join(parts) + "\n"


def relink(text: str, source: str, page: str) -> str:
    """Return a text with the links of a file of the project, as links of a page of the site.

    Args:
        text: Markdown.
        source: path of the file from the project's root.
        page: path of the page below `docs`.
    """

    def replace(match: re.Match[str]) -> str:
        if match[0].startswith("`"):
            return match[0]  # code
        label, target = match.groups()
        label = _LINK.sub(replace, label[1:-1]) if "](" in label else label[1:-1]
        if re.match(r"[a-z]+:|#", target):
            return f"[{label}]({target})"
        path, _, anchor = target.partition("#")
        place = _place(posixpath.normpath(posixpath.join(posixpath.dirname(source), path)))
        if place is None:
            return label  # a file that the site does not have
        place, own = place
        anchor = anchor or own
        place = posixpath.relpath(place, posixpath.dirname(page) or ".")
        return f"[{label}]({place}{'#' * bool(anchor)}{anchor})"

    return "".join(
        part if part.startswith("```") else _LINK.sub(replace, part) for part in split(text)
    )


def split(text: str) -> Iterator[str]:
    """Yield blocks of code, which begin with three backticks, and the texts between them."""
    end = 0
    for fence in _FENCE.finditer(text):
        yield text[end : fence.start()]
        yield fence[0]
        end = fence.end()
    yield text[end:]


def _place(path: str) -> tuple[str, str] | None:
    """Return the page or file of the site, and its anchor, for a file of the project."""
    if path.startswith("docs/"):
        return path[len("docs/") :], ""
    if path.startswith("examples/"):
        return EXAMPLES, posixpath.splitext(posixpath.basename(path))[0]
    return next(((page, "") for page, source in COPIES.items() if source == path), None)


def links(text: str) -> Iterator[str]:
    """Yield the targets of all links and pictures outside of code."""
    for part in split(text):
        if not part.startswith("```"):
            plain = re.sub(r"`[^`]*`", "", part)
            yield from re.findall(r"\]\(([^)\s]+)\)", plain)
            yield from re.findall(r"(?<!\\)\[[^\[\]]*\] ?\[([^\[\]]+)\]", plain)  # [text] [target]


def anchors(text: str) -> set[str]:
    """Return the anchors of the headings of a page."""
    found = set()
    for part in split(text):
        if part.startswith("```"):
            continue
        for title in re.findall(r"^#+ (.*)$", part, re.MULTILINE):
            named = re.search(r"\{ #(\S+) \}$", title)
            found.add(named[1] if named else slug(title))
    return found


def slug(title: str) -> str:
    """Return the anchor that Markdown gives to a heading."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages to the `mkdocs.structure.files.Files` of the site."""
    file = importlib.import_module("mkdocs.structure.files").File
    for page, content in generated_pages().items():
        files.append(file.generated(config, page, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let links to files outside of `docs` lead to their pages; widen the landing page."""
    path = page.file.src_uri
    if path == "index.md":
        page.meta["hide"] = ["toc"]
    return markdown if path in generated_pages() else relink(markdown, f"docs/{path}", path)


def on_post_build(config: Any) -> None:
    """Write the Markdown of each page beside it, to which `llms.txt` links."""
    for page, text in markdown_pages().items():
        (Path(config["site_dir"]) / page).write_text(text, encoding="utf-8")
