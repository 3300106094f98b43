"""One table of keys for all pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyworlds.viewer.browser.keys import KEYS, PageKeys, keys_html, keys_markdown
from manyworlds.viewer.browser.overlays.table import FLAGS, OVERLAY_KEYS, OVERLAYS
from manyworlds.viewer.browser.server import new_server, stop_server
from tests.browser import free_port

pytest.importorskip("viser", reason="needs the extra 'lab'")


@pytest.mark.parametrize("page", ["play", "lab", "training"])
def test_a_key_has_one_action(page):
    """Count the keys of each page: none has two actions."""
    keys = [key for binding in KEYS.values() if page in binding.pages for key in binding.keys]
    assert len(keys) == len(set(keys))


def test_a_key_does_the_same_on_all_pages():
    """Count the keys of all pages together: none changes its meaning from page to page."""
    keys = [key for binding in KEYS.values() for key in binding.keys]
    assert len(keys) == len(set(keys))


def test_the_documentation_has_the_table():
    """Compare the table of the documentation with that of the pages."""
    text = (Path(__file__).parents[2] / "docs" / "viewing.md").read_text()
    assert keys_markdown() in text


def test_keys_of_overlays_are_overlays():
    """Look up what keys switch, and what MuJoCo draws, among the overlays."""
    assert OVERLAY_KEYS.keys() <= KEYS.keys() and FLAGS.keys() <= OVERLAYS.keys()
    assert {name for names in OVERLAY_KEYS.values() for name in names} <= OVERLAYS.keys()


def test_unknown_actions_are_refused():
    """Register an action that the page does not have: the message names those that it has."""
    server = new_server("127.0.0.1", free_port())
    try:
        with pytest.raises(
            ValueError, match=r"page 'lab' has no key for 'next_world': pause, step"
        ):
            PageKeys(server.gui, "lab", {"next_world": lambda: None})
        keys = PageKeys(server.gui, "training", {"frame": lambda: None})
        assert keys.names == {"frame", "panel", "help"} and set(keys.actions) == {
            "F",
            "tab",
            "B",
            "H",
            "?",
        }
        assert "Frame what is selected" in keys_html(keys.names)
        keys.remove()
    finally:
        stop_server(server)
