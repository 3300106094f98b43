"""Worlds that the documentation embeds."""

from pathlib import Path

import pytest

from manyworlds.lab.world.gallery import GALLERY
from tools.write_shared_worlds import WORLDS, embedded

ROOT = Path(__file__).parents[2]


def test_the_page_has_a_place_for_the_worlds():
    """Show each world of the gallery once, in the place that the page gives."""
    assert set(WORLDS) <= set(GALLERY)
    page = embedded((ROOT / "docs" / "share.md").read_text(encoding="utf-8"))
    assert page.count("?embed&amp;world=") == len(WORLDS) == 3
    assert 'src="shared/index.html?embed&amp;world=2"' in page
    with pytest.raises(ValueError, match="must have '<!-- worlds -->' once"):
        embedded(page)
