"""Tables for terminals."""

from __future__ import annotations

from manyworlds.utils.table import render_table


def test_units_are_text_and_numbers_are_right_aligned():
    """Keep what looks like markup or an emoji, and show missing numbers as hyphens."""
    rows = [("knee[rad]", 10.5), (":smile:", None), ("hip", 2)]
    table = render_table("torque [rad]", ("joint [rad]", "effort [s]"), rows)
    assert table.startswith("torque [rad]\n")
    for line in ("┃ joint [rad] ┃ effort [s] ┃", "│ knee[rad]   │       10.5 │"):
        assert line in table
    for line in ("│ :smile:     │          - │", "│ hip         │          2 │"):
        assert line in table
