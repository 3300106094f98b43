"""HTML of panels."""

from manyworlds.viewer.browser.markup import status_html


def test_long_names_do_not_cover_their_values():
    """Let columns of names grow with what is in them, and be no narrower than asked for."""
    html = status_html([("World", "1"), ("Requested speed", "2x")], name_em=(4.0, 5.5))
    assert "minmax(4em,max-content) 1fr minmax(5.5em,max-content) 1fr" in html
