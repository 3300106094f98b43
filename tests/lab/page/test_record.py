"""Recording and replay on the page."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from manyworlds.lab import LIVE, RecorderCfg, RecordingError
from manyworlds.lab.recording.replay import Binding
from tests.lab.page.conftest import give, press
from tests.lab.page.test_page import iterate_once


@pytest.fixture
def page(open_page, tmp_path):
    """A page of the arm whose recordings lie in a folder of their own."""
    return open_page(recorder=RecorderCfg(folder=tmp_path / "recordings"))


@pytest.fixture
def part(page):
    """Its part for recordings, with half a second of a moving arm in the live session."""
    part = page.parts["RecordPart"]
    give(part.file, "swing.mcap")
    part.toggle_recording()
    page.lab["arm"].write("panel", {"shoulder": 5.0})
    iterate_once(page, 250)
    part.toggle_recording()
    iterate_once(page)
    return part


def test_record_and_stop(page, part):
    """Record: a frame a step, counted and with its file; the new file is among the sessions."""
    assert len(page.lab.recorder.load(LIVE)) == 250
    assert "250 frames, 0.50 s, swing.mcap" in part.recorded.content
    assert part.file.value == ""
    part._scanned = float("-inf")
    iterate_once(page)
    assert tuple(part.session.options) == (LIVE, "swing.mcap")
    part.toggle_recording()
    part.toggle_recording()
    give(part.file, "../evil.mcap")
    with pytest.raises(ValueError, match="'../evil.mcap' is not a valid name"):
        part.toggle_recording()
    assert not page.lab.recorder.is_recording


def test_play_and_pause(page, part):
    """Play the live session: report and banner follow it; the button of the header pauses it."""
    replay, before = page.lab.replay, page.lab.snapshot.qpos.copy()
    bar = page.parts["TopBar"]
    press(part.start)
    iterate_once(page, 100)
    assert replay.is_active and bar.play.label == "Pause"
    assert "3 exact" in part.report.content and replay.time == pytest.approx(0.2)
    assert "REPLAY" in bar.banner.content and "PAUSED" not in bar.banner.content
    press(bar.play)
    iterate_once(page, 3)
    assert replay.time == pytest.approx(0.2) and bar.play.label == "Play"
    assert "REPLAY PAUSED" in bar.banner.content and not page.lab.paused
    press(bar.play)
    iterate_once(page, 3)
    assert replay.playing and bar.play.label == "Pause"
    replay.stop()
    iterate_once(page)
    assert not replay.is_active and part.report.content == ""
    np.testing.assert_allclose(page.lab.snapshot.qpos, before, atol=0.05)


def test_loop_and_rate(page, part):
    """Set how it plays: backwards, and once."""
    replay = page.lab.replay
    give(part.loop, False)
    give(part.rate, "-1x")
    press(part.start)
    replay.seek(0.05)
    iterate_once(page, 60)
    assert replay.time == 0.0 and not replay.playing


def test_robots_take_part_as_told(page, part):
    """Choose how a robot takes part: the replay has it so."""
    give(part.roles["arm"], "excluded")
    assert page.lab.replay.bindings["arm"] == Binding(enabled=False)
    give(part.roles["arm"], "from initial pose")
    assert page.lab.replay.bindings["arm"] == Binding(relative=True)


def test_files_go_out_and_come_in(page, part, tmp_path):
    """Save as CSV, download, import a file from elsewhere, and refuse broken ones."""
    recorder = page.lab.recorder
    give(part.name, "swing.csv")
    press(part.save)
    saved = recorder.load("swing.csv")
    assert len(saved) == 250
    sent = []
    client = SimpleNamespace(send_file_download=lambda *args, **_: sent.append(args))
    for call in part.download._impl.update_cb:
        call(SimpleNamespace(client=client))
    assert sent == [("swing.csv", (recorder.folder / "swing.csv").read_bytes())]
    file = SimpleNamespace(name="other.csv", content=sent[0][1])
    give(part.upload, file)
    assert part.session.value == recorder.active == "other.csv"
    np.testing.assert_array_equal(recorder.load("other.csv").values, saved.values)
    for name, content in (("bad.csv", b"no numbers\nat all"), ("../evil.csv", sent[0][1])):
        give(part.upload, SimpleNamespace(name=name, content=content))
        iterate_once(page)
        assert name in page.parts["TopBar"].status.content
    assert recorder.sessions == [LIVE, "other.csv", "swing.csv", "swing.mcap"]
    with pytest.raises(RecordingError):
        recorder.add("bad.json", b"{")


def test_the_view_is_recorded(page, part):
    """Look from elsewhere while recording: the recording knows, and shows it again."""
    look_at = np.array([0.0, 0.0, 0.5])
    camera = SimpleNamespace(position=np.array([1.0, 1.0, 1.5]), look_at=look_at)
    part._follow(camera)
    assert part._view[:3] == (1.0, 1.0, 1.5)
    assert part._view[3:] == pytest.approx((-35.264, -135.0, 0.0), abs=1e-3)
    part.toggle_recording()
    iterate_once(page, 5)
    part.toggle_recording()
    columns = page.lab.recorder.load(LIVE).columns("camera", "camera")
    np.testing.assert_allclose(columns, np.tile(part._view, (5, 1)))
    press(part.start)
    iterate_once(page)
    np.testing.assert_allclose(page.lab.replay.camera, part._view)
    assert not part.look.disabled
