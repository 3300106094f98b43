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
    press(part.record)
    page.lab["arm"].write("panel", {"shoulder": 5.0})
    iterate_once(page, 250)
    press(part.record)
    iterate_once(page)
    return part


def test_record_and_stop(page, part):
    """Record: a frame a step, counted and with its file; the new file is among the sessions."""
    assert len(page.lab.recorder.load(LIVE)) == 250
    assert "250 frames, 0.50 s, swing.mcap" in part.recorded.content
    assert part.record.label == "Record" and part.file.value == ""
    part._scanned = float("-inf")
    iterate_once(page)
    assert tuple(part.session.options) == (LIVE, "swing.mcap")
    press(part.record)
    press(part.record)
    give(part.file, "../evil.mcap")
    press(part.record)
    iterate_once(page)
    assert "../evil.mcap" in page.parts["TopBar"].status.content
    assert not page.lab.recorder.is_recording


def test_play_pause_and_seek(page, part):
    """Play the live session: label, bar and banner follow it; pause, seek and step frames."""
    replay, before = page.lab.replay, page.lab.snapshot.qpos.copy()
    bar = page.parts["TopBar"]
    press(part.start)
    iterate_once(page, 100)
    assert replay.is_active and bar.play.label == "Pause"
    assert part.scrub.max == pytest.approx(replay.duration) and not part.scrub.disabled
    assert part.scrub.value == replay.time == pytest.approx(0.2)
    assert replay.label in part.report.content and "3 exact" in part.report.content
    assert "REPLAY" in bar.banner.content and "PAUSED" not in bar.banner.content
    press(bar.play)
    give(part.scrub, 0.1)
    iterate_once(page, 3)
    assert replay.time == 0.1 and bar.play.label == "Play"
    assert "REPLAY PAUSED" in bar.banner.content and not page.lab.paused
    for call in part.frame._impl.update_cb:
        call(SimpleNamespace(target=SimpleNamespace(value="+1")))
    assert replay.time == pytest.approx(0.102)
    press(bar.play)
    iterate_once(page, 3)
    assert replay.playing and bar.play.label == "Pause"
    press(part.stop)
    iterate_once(page)
    assert not replay.is_active and part.scrub.disabled and part.report.content == ""
    np.testing.assert_allclose(page.lab.snapshot.qpos, before, atol=0.05)


def test_the_bar_is_not_taken_from_a_hand(page, part):
    """Move the bar while it plays: it stays where the hand is, and follows again later."""
    press(part.start)
    iterate_once(page, 10)
    give(part.scrub, 0.3)
    part.scrub._impl.value = 0.31  # the hand is ahead of the page
    iterate_once(page, 10)
    assert part.scrub.value == 0.31
    part._touched = float("-inf")
    iterate_once(page)
    assert part.scrub.value == page.lab.replay.time


def test_loop_rate_and_return(page, part):
    """Set how it plays: backwards, once, and going on from the frame that is shown."""
    replay = page.lab.replay
    give(part.loop, False)
    give(part.rate, "-1x")
    give(part.restore, False)
    press(part.start)
    give(part.scrub, 0.05)
    iterate_once(page, 60)
    assert replay.time == 0.0 and not replay.playing
    shown = page.lab.snapshot.qpos.copy()
    press(part.stop)
    assert (page.lab.loop.data.qpos == shown).all()


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
    press(part.record)
    iterate_once(page, 5)
    press(part.record)
    columns = page.lab.recorder.load(LIVE).columns("camera", "camera")
    np.testing.assert_allclose(columns, np.tile(part._view, (5, 1)))
    press(part.start)
    iterate_once(page)
    np.testing.assert_allclose(page.lab.replay.camera, part._view)
    assert not part.look.disabled
