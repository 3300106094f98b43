"""Picture of the layers of the package, from the contract that `lint-imports` checks."""

from __future__ import annotations

import tomllib
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[2]
PICTURE = Path("docs/media/layers.svg")
# Groups of layers, top to bottom: title and color. A layer takes the group of the one above it.
_GROUPS = {
    "compat": ("For people", "#6d8fc7"),
    "tasks": ("Tasks and learning", "#58a08c"),
    "envs": ("The environment", "#c7945a"),
    "scene": ("What exists in a world", "#a779b8"),
    "sim": ("Simulation", "#c46d6d"),
    "spec": ("Tools", "#8a8f98"),
}
_ROW, _WIDTH, _LABEL = 30, 880, 180


def layers() -> list[str]:
    """Return the layers, from top to bottom."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    house = next(contract for contract in contracts if contract["name"].startswith("The house"))
    return [name.removeprefix("manyworlds.") for name in house["layers"]]


def summary(layer: str) -> str:
    """Return the first sentence of a package's docstring, without its period."""
    path = ROOT / "src" / "manyworlds" / layer / "__init__.py"
    text = path.read_text() if path.exists() else path.parent.with_suffix(".py").read_text()
    line = text.split('"""')[1].strip().splitlines()[0]
    return line.partition(". ")[0].rstrip(".").replace("`", "")


def picture() -> str:
    """Return the picture as SVG."""
    names = layers()
    height = _ROW * len(names) + 40
    title, color, start = "", "", 0
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="sans-serif" font-size="13" role="img">',
        "<title>Layers of manyworlds: imports go down only</title>",
        f'<rect width="{_WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
    ]
    for i, name in enumerate(names):
        y = 10 + _ROW * i
        if name in _GROUPS:
            title, color = _GROUPS[name]
            start = i
        if i == start:
            parts.append(
                f'<text x="14" y="{y + 19}" fill="{color}" font-weight="bold">{title}</text>'
            )
        parts.append(
            f'<rect x="{_LABEL}" y="{y}" width="{_WIDTH - _LABEL - 10}" height="{_ROW - 4}" rx="4" '
            f'fill="{color}" fill-opacity="0.16" stroke="{color}"/>'
        )
        parts.append(
            f'<text x="{_LABEL + 10}" y="{y + 18}" font-weight="bold" fill="#222">{name}</text>'
        )
        parts.append(
            f'<text x="{_LABEL + 110}" y="{y + 18}" fill="#222">{escape(_short(name))}</text>'
        )
    parts.append(
        f'<text x="{_LABEL}" y="{height - 10}" fill="#555">Imports go down only: a package may '
        "import the ones below it.</text>"
    )
    return "\n".join([*parts, "</svg>\n"])


def _short(layer: str) -> str:
    text = summary(layer)
    return text if len(text) <= 90 else text[:89].rsplit(" ", 1)[0].rstrip(",:;") + " ..."
