"""Shapes that programs draw into the view."""

from __future__ import annotations

import time

import pytest

from manyworlds.lab.play.drawings import KINDS, MOST_SHAPES


def test_shapes_come_and_vanish(page, monkeypatch):
    """Draw all kinds, one with a time to live: the page has them; then it, then all, are gone."""
    lab, part = page.lab, page.parts["UserShapesPart"]
    for kind in KINDS:
        points = [0.0, 0.0, 1.0, 1.0, 0.0, 1.0] if kind in ("line", "arrow") else [0.0, 0.0, 1.0]
        ttl = 5.0 if kind == "box" else None
        lab.call("draw_shape", name=kind, kind=kind, points=points, text="a note", ttl=ttl)
    page.update()
    assert set(part.drawn) == set(KINDS) and not page.errors
    lab.call("draw_shape", name="marker", kind="marker", points=[0.0, 0.0, 2.0])
    page.update()
    assert part.drawn["marker"]["points"] == ((0.0, 0.0, 2.0),)
    now = time.monotonic()
    monkeypatch.setattr("manyworlds.lab.play.drawings.time.monotonic", lambda: now + 6.0)
    assert "box" not in lab.drawings.shapes
    page.update()
    assert set(part.drawn) == set(KINDS) - {"box"}
    lab.call("clear_drawings", name="line")
    assert "line" not in lab.drawings.shapes
    lab.call("clear_drawings")
    page.update()
    assert not part.drawn and not page.errors


def test_wrong_shapes_are_refused(lab):
    """Draw what does not fit its kind, and too many shapes: one sentence each."""
    draw = lab.drawings.draw
    for words, given in {
        "2 to 10000 points": ("a", "line", [(0, 0, 0)]),
        "1 to 1 points": ("a", "box", [(0, 0, float("nan"))]),
        "is one of marker": ("a", "circle", [(0, 0, 0)]),
    }.items():
        with pytest.raises(ValueError, match=words):
            draw(*given)
    with pytest.raises(ValueError, match="must be positive"):
        draw("a", "marker", [(0, 0, 0)], ttl=0.0)
    for i in range(MOST_SHAPES):
        draw(str(i), "marker", [(0, 0, 0)])
    draw("1", "marker", [(0, 0, 1)])
    with pytest.raises(ValueError, match="clear some"):
        draw("one more", "marker", [(0, 0, 0)])
