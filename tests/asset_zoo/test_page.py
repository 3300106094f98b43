"""The page about robots."""

from __future__ import annotations

from pathlib import Path

from tools.write_robot_page import PAGE, PICTURE, render

PROJECT = Path(__file__).parents[2]


def test_page_is_up_to_date():
    """Keep the page in step with the robots."""
    assert (PROJECT / PAGE).read_text() == render(), "run `python tools/write_robot_page.py`"


def test_picture_is_small():
    """Keep the picture below 200 kB."""
    assert (PROJECT / PICTURE).stat().st_size < 200_000
