"""Inputs for the fields of verbs: labels, units, bounds and choices are those of the verb."""

from __future__ import annotations

import pytest

pytest.importorskip("viser", reason="needs the extra 'lab'")

from manyworlds.lab.page.verb_form import VerbForm
from manyworlds.lab.play.launcher import FASTEST, SLOWEST
from tests.lab.page.conftest import give


def test_inputs_are_as_the_verb_declares_them(page):
    """Make inputs of a launch: units, bounds, choices and defaults; its values aim a body."""
    form = VerbForm(page.context, "aim_launcher")
    speed = form.add("speed")
    assert (speed.label, speed.value, speed.min, speed.max) == (
        "Speed [m/s]",
        10.0,
        SLOWEST,
        FASTEST,
    )
    assert speed.hint == "Speed of a direct launch." and speed.step == 1.0
    path = form.add("path", "Way", "ballistic")
    assert path.label == "Way" and path.options == ("direct", "ballistic")
    auto = form.add("auto")
    assert auto.value is False and auto.hint.startswith("Reset and launch")
    give(speed, 3.0)
    assert form.values() == {"speed": 3.0, "path": "ballistic", "auto": False}
    page.lab.verbs.aim_launcher(body="ball", target="lower", **form.values())
    assert page.lab.launcher.plain()[0]["speed"] == 3.0


def test_vectors_and_names_are_given_as_the_verb_takes_them(page):
    """Give a center, names with commas, and a whole number: lists and numbers come out."""
    form = VerbForm(page.context, "read_region_heights")
    center = form.add("center")
    exclude = form.add("exclude")
    give(center, (1.0, 2.0))
    give(exclude, " ball, arm/.* ,")
    assert form.values() == {"center": (1.0, 2.0), "exclude": ["ball", "arm/.*"]}
    base = VerbForm(page.context, "add_height_field").add("base_thickness", slider=True)
    assert (base.min, base.max, base.value) == (0.01, 1.0, 0.1)
    rows = VerbForm(page.context, "add_item_grid").add("rows", value=2)
    assert (rows.min, rows.max, rows.step) == (1, 1024, 1)
    with pytest.raises(KeyError, match="nothing"):
        form.add("nothing")


def test_empty_texts_are_left_out_where_they_are_optional(page):
    """Leave optional names empty: the verb chooses; a name that it needs stays, and is refused."""
    form = VerbForm(page.context, "rename_item")
    form.add("item")
    form.add("name")
    assert form.values() == {"item": "", "name": ""}
    form = VerbForm(page.context, "duplicate_item")
    form.add("item", value="ball")
    form.add("name")
    assert form.values() == {"item": "ball"}
