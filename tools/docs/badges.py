"""Badges of the README, as files, so that they need no other server."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[2]
_FOLDER = Path("docs/media")
_CHARACTER = 6.6  # mean width at 11 px


def badges() -> dict[Path, str]:
    """Return each badge as SVG, by its path."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        settings = tomllib.load(file)
    project = settings["project"]
    (mujoco,) = [d for d in project["dependencies"] if re.match(r"mujoco\b", d)]
    facts = {
        "python": ("Python", project["requires-python"], "#3b6ea5"),
        "mujoco": ("MuJoCo", mujoco.removeprefix("mujoco").replace(",", ", "), "#3f8f6b"),
        "license": ("License", project["license"], "#7a6aa8"),
        "types": ("Types", f"pyright {settings['tool']['pyright']['typeCheckingMode']}", "#9a7b3f"),
    }
    return {_FOLDER / f"badge_{name}.svg": _badge(*fact) for name, fact in facts.items()}


def _badge(left: str, right: str, color: str) -> str:
    first, second = (round(_CHARACTER * len(text)) + 14 for text in (left, right))
    width = first + second
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img">\n'
        f"<title>{escape(left)} {escape(right)}</title>\n"
        f'<rect width="{width}" height="20" rx="4" fill="{color}"/>\n'
        f'<rect width="{first}" height="20" rx="4" fill="#444b54"/>\n'
        '<g fill="#fff" font-family="sans-serif" font-size="11" text-anchor="middle">\n'
        f'<text x="{first / 2}" y="14">{escape(left)}</text>\n'
        f'<text x="{first + second / 2}" y="14">{escape(right)}</text>\n'
        "</g>\n</svg>\n"
    )
