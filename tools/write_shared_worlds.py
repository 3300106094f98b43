"""Worlds that the documentation's page about sharing embeds; `make docs` writes them last.

It runs in the project's root, in an environment with the extra `share`, and needs npm.
"""

from __future__ import annotations

import sys
from pathlib import Path

from manyworlds.cli.main import main as manyworlds
from manyworlds.share.folder import folder_size

SITE = Path("site")
WORLDS = {
    "quadruped-to-drive": "A quadruped that walks: W A S D and Q E drive it.",
    "arm-and-blocks": "An arm and blocks: pull them with the mouse.",
    "cloth-on-a-pole": "A cloth on a pole.",
}
"""Worlds of the gallery, with a sentence about each."""
MARK = "<!-- worlds -->"
"""Place in `docs/share.md`."""


def embedded(page: str) -> str:
    """Return the page with a frame for each world.

    Raises:
        ValueError: the page has no place for them.
    """
    if page.count(MARK) != 1:
        raise ValueError(f"docs/share.md must have '{MARK}' once, where the worlds appear.")
    frames = []
    for number, text in enumerate(WORLDS.values()):
        address = f"shared/index.html?embed&amp;world={number}"
        frames.append(
            f'<p>{text}</p><iframe src="{address}" title="{text}" loading="lazy" '
            'style="width: 100%; height: 420px; border: 0"></iframe>'
        )
    return page.replace(MARK, "\n".join(frames))


def main() -> int:
    """Write the worlds into the built site, and show them on its page about sharing."""
    page = SITE / "share.html"
    folder = SITE / "shared"
    text = embedded(page.read_text(encoding="utf-8"))
    if manyworlds(["share", *WORLDS, "--title", "manyworlds", "--output", str(folder)]):
        return 1
    page.write_text(text, encoding="utf-8")
    print(f"{folder}: {folder_size(folder):.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
