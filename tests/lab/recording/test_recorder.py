"""The recorder: a frame a step, bounded memory, sessions."""

from __future__ import annotations

import time

import numpy as np
import pytest

from manyworlds.lab import LIVE, LabCfg, LiveLab, Puppet, RecorderCfg, RecordingError


@pytest.fixture
def folder(tmp_path):
    """Folder of the recordings."""
    return tmp_path / "recordings"


@pytest.fixture
def make_lab(world, folder):
    """Make labs that are stopped at the end."""
    labs = []

    def make(**cfg) -> LiveLab:
        recorder = RecorderCfg(folder=folder, **cfg.pop("recorder", {}))
        labs.append(LiveLab(world, LabCfg(recorder=recorder, **cfg)))
        return labs[-1]

    yield make
    for lab in labs:
        lab.stop()


@pytest.mark.parametrize("mode", ["live", "direct"])
@pytest.mark.parametrize("threaded", [False, True])
def test_there_is_a_frame_for_each_step(make_lab, mode, threaded):
    """Record over steps, pauses, resets and restored states, with and without a thread."""
    lab = make_lab(mode=mode)
    lab.recorder.start()
    if threaded:
        lab.start()
    lab.step(30)
    lab.states.save("here")
    lab.pause()
    lab.step(7)
    lab.reset()
    lab.step(5)
    lab.states.restore("here")
    lab.play()
    lab.step(3)
    lab.recorder.stop()
    with lab.lock():
        steps = lab.loop.num_steps
    live = lab.recorder.load(LIVE)
    # A live world goes on by itself between the calls.
    assert len(live) >= 45 if mode == "live" and threaded else len(live) == steps == 45
    assert (np.diff(live.times) > 0.0).all()
    name = lab.recorder.sessions[1]
    file = lab.recorder.load(name)
    assert file.complete and np.array_equal(file.values, live.values)
    assert np.array_equal(file.times, live.times)


def test_a_running_world_is_recorded_step_by_step(make_lab):
    """Record in real time from the start: as many frames as steps, none twice, none missing."""
    lab = make_lab(speed=float("inf"), recorder={"auto_record": True})
    lab.start()
    while lab.loop.num_steps < 2000:
        time.sleep(0.01)
    lab.stop()
    live = lab.recorder.load(LIVE)
    assert len(live) == lab.recorder.num_frames == lab.loop.num_steps
    assert np.diff(live.times) == pytest.approx(0.002)
    assert len(lab.recorder.load(lab.recorder.path.name)) == len(live)
    assert lab.recorder.error == ""


def test_pauses_add_nothing(make_lab):
    """Pause while recording: no frames come until time goes by again."""
    lab = make_lab()
    lab.start()
    lab.recorder.start()
    lab.step(3)
    lab.pause()
    while not lab.paused:
        time.sleep(0.01)
    frames = lab.recorder.num_frames
    time.sleep(1.0)
    assert lab.recorder.num_frames == frames
    lab.play()
    while lab.recorder.num_frames == frames:
        time.sleep(0.01)


def test_frames_are_the_states(make_lab):
    """Compare each frame with the step's own snapshot, by name."""
    lab = make_lab(recorder={"to_file": False})
    lab.recorder.start()
    lab["arm"].write("panel", {"elbow": 4.0})
    snapshots = [lab.step() for _ in range(50)]
    live = lab.recorder.load()
    assert np.array_equal(live.times, [s.time for s in snapshots])
    assert np.array_equal(live.columns("qpos", "elbow")[:, 0], [s.qpos[1] for s in snapshots])
    assert np.array_equal(live.columns("qpos", "ball:0"), [s.qpos[2:] for s in snapshots])
    assert np.array_equal(live.columns("qvel", "ball:0"), [s.qvel[2:] for s in snapshots])
    assert (live.columns("ctrl", "elbow") == 4.0).all()
    assert live.joint_types == {"shoulder": "hinge", "elbow": "hinge", "ball:0": "free"}
    assert lab.recorder.path is None and lab.recorder.sessions == [LIVE]


def test_a_puppets_steps_are_recorded(make_lab):
    """Show states of one's own, with and without a time: a frame for each that was shown."""
    lab = make_lab(recorder={"to_file": False})
    lab.recorder.start()
    puppet = Puppet()
    lab.loop.push_stepper(puppet, "test")
    for angle in (0.1, 0.2, 0.3):
        puppet.show(qpos=[angle, 0, 0, 0, 1, 1, 0, 0, 0])
        lab.loop.iterate_once()
        lab.loop.iterate_once()
    live = lab.recorder.load()
    assert live.columns("qpos", "shoulder")[:, 0].tolist() == [0.1, 0.2, 0.3]
    assert (np.diff(live.times) > 0.0).all()


def test_memory_keeps_the_newest(make_lab):
    """Record more than may be kept: by time, by memory; the file keeps all."""
    lab = make_lab()
    lab.recorder.start("all.mcap", max_duration=0.1)
    lab.step(200)
    lab.recorder.stop()
    live = lab.recorder.load()
    assert len(live) in (50, 51) and live.times[-1] == lab.snapshot.time
    assert live.duration == pytest.approx(0.1, abs=0.0021)
    assert len(lab.recorder.load("all.mcap")) == 200
    small = make_lab(recorder={"max_megabytes": 0.02, "to_file": False})
    small.recorder.start()
    small.step(100)
    rows = small.recorder.num_frames
    row_bytes = 8 * (1 + live.values.shape[1])
    assert rows * row_bytes <= 0.02e6 < (rows + 1) * row_bytes and rows < 100
    assert small.recorder.load().times[-1] == small.snapshot.time


def test_recordings_begin_and_end(make_lab):
    """Begin twice, end twice, begin again, forget."""
    lab = make_lab()
    lab.recorder.start()
    with pytest.raises(RuntimeError, match="recorded already"):
        lab.recorder.start()
    lab.step(4)
    lab.recorder.stop()
    lab.recorder.stop()
    lab.step(4)
    assert lab.recorder.num_frames == 4 and not lab.recorder.is_recording
    lab.recorder.start("b.mcap")
    lab.step(2)
    lab.recorder.clear()
    lab.reset()
    lab.step(1)
    lab.recorder.stop()
    assert lab.recorder.num_frames == 1 and len(lab.recorder.load("b.mcap")) == 3
    with pytest.raises(FileExistsError, match="There is a recording '.*' already: use another"):
        lab.recorder.start("b.mcap")
    assert not lab.recorder.is_recording


def test_sessions_are_the_live_one_and_files(make_lab, folder):
    """List, choose, load and save; nothing but recordings is listed."""
    lab = make_lab(recorder={"to_file": False})
    assert lab.recorder.sessions == [LIVE] == [lab.recorder.active]
    with pytest.raises(ValueError, match="'Live' has no frames"):
        lab.recorder.save("none.csv")
    lab.recorder.start()
    lab.step(5)
    for name in ("walk.mcap", "walk.csv", "walk.json"):
        assert lab.recorder.save(name) == folder / name
    (folder / "notes.txt").write_text("x")
    (folder / ".hidden.csv").write_text("x")
    assert lab.recorder.sessions == [LIVE, "walk.csv", "walk.json", "walk.mcap"]
    live = lab.recorder.load()
    for name in lab.recorder.sessions[1:]:
        lab.recorder.active = name
        again = lab.recorder.load()
        assert again.joints == live.joints
        for joint in live.joints:
            columns = live.columns("qpos", joint)
            assert again.columns("qpos", joint) == pytest.approx(columns, abs=1e-8)
    with pytest.raises(KeyError, match="no recording 'run.csv'"):
        lab.recorder.active = "run.csv"
    (folder / "bad.csv").write_text("time,hip\n0,x\n")
    with pytest.raises(RecordingError, match="line 2"):
        lab.recorder.load("bad.csv")


def test_a_file_is_not_replaced_while_it_is_written(make_lab):
    """Save to, and import as, the file of the live session; afterwards both go."""
    lab = make_lab()
    lab.recorder.start("live.mcap")
    lab.step(3)
    lab.recorder.save("other.mcap")
    content = (lab.recorder.folder / "other.mcap").read_bytes()
    with pytest.raises(FileExistsError, match="'live.mcap': stop that, or use another name"):
        lab.recorder.save("live.mcap")
    with pytest.raises(FileExistsError, match="'live.mcap': stop that, or use another name"):
        lab.recorder.add("live.mcap", content)
    lab.step(3)
    lab.recorder.stop()
    assert len(lab.recorder.load("live.mcap")) == 6
    lab.recorder.add("live.mcap", content)
    assert len(lab.recorder.load("live.mcap")) == 3


def test_names_cannot_leave_the_folder(make_lab, tmp_path):
    """Ask for files elsewhere, and for those that are none."""
    lab = make_lab()
    for name in ("../a.csv", "/etc/a.csv", "a/b.mcap", "..\\a.csv", ".csv", "a.npz", "a.csv\n"):
        for call in (lab.recorder.load, lab.recorder.save):
            with pytest.raises(ValueError, match="is not a valid name of a recording"):
                call(name)
    for name in ("a.csv", "../a.mcap"):
        with pytest.raises(ValueError):
            lab.recorder.start(name)
    assert not lab.recorder.is_recording and list(tmp_path.iterdir()) == []


def test_many_files_do_not_slow_the_start(make_lab, folder, monkeypatch):
    """Begin where a thousand files lie that nobody has asked for yet: none of them is read."""
    monkeypatch.setattr(
        "manyworlds.lab.recording.recorder.load_recording",
        lambda path, timestep: pytest.fail(str(path)),
    )
    folder.mkdir()
    for number in range(1000):
        (folder / f"{number:04}.mcap").write_bytes(b"")
    lab = make_lab()
    assert len(lab.recorder.sessions) == 1001


def test_the_camera_is_recorded(make_lab, folder):
    """Tell from where one looks: it is in all formats."""
    lab = make_lab(recorder={"to_file": False})
    lab.recorder.camera = lambda: [lab.loop.data.time, 0, 1, 10, 20, 30]
    lab.recorder.start()
    lab.step(3)
    for name in ("a.mcap", "a.csv", "a.json"):
        lab.recorder.save(name)
        camera = lab.recorder.load(name).columns("camera", "camera")
        assert camera[2] == pytest.approx([0.006, 0, 1, 10, 20, 30])
