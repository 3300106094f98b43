"""Sentences beside buttons about what was done, and where."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from tests.lab.page.conftest import press
from tests.lab.page.test_page import iterate_once


def test_saved_states_are_named_and_deleted(page):
    """Save a state under a name, and delete it: the page tells both, and offers what is there."""
    part = page.parts["SavedStatePart"]
    iterate_once(page)
    assert part.drop.disabled
    part.name.value = "upright"
    press(part.save)
    iterate_once(page)
    assert "is saved as &#x27;upright&#x27;" in part.outcome.content
    assert part.choice.value == "upright" and not part.drop.disabled
    press(part.drop)
    iterate_once(page)
    assert "&#x27;upright&#x27; was deleted" in part.outcome.content
    assert list(page.lab.states) == [] and part.drop.disabled


def test_a_recording_gets_its_suffix(page, tmp_path, monkeypatch):
    """Record as `myrun`: the file is `myrun.mcap`, a sign says REC, and Save tells the path."""
    part, top = page.parts["RecordPart"], page.parts["TopBar"]
    page.lab.recorder.folder = tmp_path
    part.file.value = "myrun"
    part.toggle_recording()
    iterate_once(page, 5)
    assert "REC" in top.banner.content
    part.toggle_recording()
    iterate_once(page, 2)
    assert "REC" not in top.banner.content
    assert (tmp_path / "myrun.mcap").is_file()
    part.name.value = "copy"
    press(part.save)
    assert str(tmp_path / "copy.mcap") in part.imported.content


def test_a_camera_is_added_where_the_page_looks(page):
    """Add a camera at the view of a browser: it has that place, and a free name."""
    part = page.parts["CameraImagePart"]
    view = SimpleNamespace(
        position=np.array([2.0, 0.0, 1.0]), look_at=np.zeros(3), fov=np.deg2rad(45.0)
    )
    for name in ("view_1", "view_2"):
        told = part._add_here(SimpleNamespace(camera=view))
        assert told == f"The camera '{name}' looks from here."
        np.testing.assert_allclose(page.lab.cameras[name].cfg.pos, (2.0, 0.0, 1.0))


def test_the_button_of_a_stopped_world_resets_it(page):
    """Stop the world by a fault: the button says what it does, and does it."""
    top, lab = page.parts["TopBar"], page.lab
    iterate_once(page)
    assert top.play.label == "Pause"
    lab.loop.do(lambda model, data: data.qpos.fill(np.nan))
    iterate_once(page, 3)
    assert lab.snapshot.fault and top.play.label == "Reset the world"
    press(top.play)
    iterate_once(page, 2)
    assert not lab.snapshot.fault and top.play.label in ("Pause", "Play")
