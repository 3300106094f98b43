"""Recordings in MCAP files: whole, cut off, damaged."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import mujoco
import numpy as np
import pytest
from mcap.reader import make_reader

from manyworlds.lab.moments.recording import Recording, RecordingError
from manyworlds.lab.recording.mcap_files import RecordingFile, read_mcap, write_mcap
from manyworlds.utils.extras import MissingExtraError

EMPTY = mujoco.MjModel.from_xml_string("<mujoco/>")
RECORD = """
import sys, time
import mujoco
from manyworlds.lab import LabCfg, LiveLab, RecorderCfg, world_from_spec
from tests.lab.conftest import ARM

cfg = LabCfg(recorder=RecorderCfg(folder=sys.argv[1], auto_record=True))
lab = LiveLab(world_from_spec(mujoco.MjSpec.from_string(ARM)), cfg)
lab.start()
while True:
    print(lab.snapshot.step, flush=True)
    time.sleep(0.01)
"""


def make_recording(num_frames: int = 400) -> Recording:
    """Numbers of a robot with a free root."""
    rng = np.random.default_rng(3)
    index = {"qpos": {"root": (0, 7), "hip": (7, 1)}, "qvel": {"hip": (8, 1)}}
    times = np.cumsum(rng.uniform(1e-3, 2e-3, num_frames))
    values = rng.normal(size=(num_frames, 12))
    return Recording(times, values, index, {"root": "free", "hip": "hinge"}, "abc")


def assert_begins(recording: Recording, whole: Recording) -> None:
    """Check that frames are the first ones of the whole, bit for bit."""
    assert np.array_equal(recording.times, whole.times[: len(recording)])
    assert np.array_equal(recording.values, whole.values[: len(recording)])


def test_everything_comes_back(tmp_path):
    """Write and read back: numbers to the last bit, names, types, the model."""
    whole = make_recording()
    write_mcap(tmp_path / "a.mcap", whole)
    again = read_mcap(tmp_path / "a.mcap")
    assert_begins(again, whole)
    assert len(again) == 400 and again.complete
    assert (again.index, again.joint_types, again.model_hash) == (
        whole.index,
        whole.joint_types,
        "abc",
    )


def test_other_programs_read_it(tmp_path):
    """Read it as any MCAP file: the header, and a message a frame with its time."""
    whole = make_recording(5)
    write_mcap(tmp_path / "a.mcap", whole)
    with (tmp_path / "a.mcap").open("rb") as stream:
        reader = make_reader(stream, validate_crcs=True)
        (metadata,) = reader.iter_metadata()
        messages = list(reader.iter_messages("state"))
    assert json.loads(metadata.metadata["header"])["index"]["qpos"] == {
        "root": [0, 7],
        "hip": [7, 1],
    }
    for number, (_, channel, message) in enumerate(messages):
        assert channel.message_encoding == "x-float64-le" and message.sequence == number
        assert message.log_time == round(whole.times[number] * 1e9)
        assert np.array_equal(np.frombuffer(message.data)[1:], whole.values[number])


def test_files_that_end_early_are_read_up_to_there(tmp_path):
    """Cut a file anywhere: no frame of a whole portion is lost, and none is invented."""
    whole, path = make_recording(), tmp_path / "a.mcap"
    file = RecordingFile(path, make_recording(0), EMPTY, 10_000)
    for part in range(4):
        for row in np.column_stack([whole.times, whole.values])[100 * part : 100 * (part + 1)]:
            file.put(row)
        time.sleep(0.3)
    file.close()
    content = path.read_bytes()
    counts = []
    for size in np.linspace(0, len(content) - 1, 60).astype(int):
        path.write_bytes(content[:size])
        try:
            recording = read_mcap(path)
        except RecordingError:
            assert size < 2000
            continue
        assert_begins(recording, whole)
        assert not recording.complete
        counts.append(len(recording))
    assert counts == sorted(counts) and len(set(counts)) >= 4 and counts[-1] == 400


def test_damage_ends_a_recording(tmp_path):
    """Change bytes in the middle: the frames before are kept, and it says that it is damaged."""
    path = tmp_path / "a.mcap"
    whole = make_recording(20_000)  # two portions
    write_mcap(path, whole)
    content = bytearray(path.read_bytes())
    content[-400_000:-399_990] = b"0123456789"
    path.write_bytes(content)
    recording = read_mcap(path)
    assert not recording.complete and 0 < len(recording) < 20_000
    assert_begins(recording, whole)


@pytest.mark.parametrize("content", [b"", b"time,hip\n0,1\n", bytes(range(256)) * 40])
def test_other_files_are_refused(tmp_path, content):
    """Read what is no recording."""
    (tmp_path / "a.mcap").write_bytes(content)
    with pytest.raises(RecordingError, match="a.mcap: it is no recording"):
        read_mcap(tmp_path / "a.mcap")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"index": {"qpos": {"hip": (11, 7)}}}, "outside the 12 columns"),
        ({"times": np.array([1.0, 1.0])}, "do not ascend"),
        ({"values": np.full((2, 12), np.nan)}, "not finite"),
        ({"index": {"qpos": 3}}, "disagree"),
    ],
)
def test_lies_are_refused(tmp_path, change, message):
    """Read files whose header does not fit the frames."""
    good = make_recording(2)
    fields = {"times": good.times, "values": good.values, "index": good.index, **change}
    if fields["index"] == {"qpos": 3}:
        fields["index"] = {"qpos": {"hip": (1, 2, 3)}}
    write_mcap(tmp_path / "a.mcap", Recording(**fields))
    with pytest.raises(RecordingError, match=message):
        read_mcap(tmp_path / "a.mcap")


def test_nobody_waits_for_a_slow_disk(tmp_path):
    """Give more rows than may wait: the file ends there and says so, and is read."""
    whole = make_recording()
    file = RecordingFile(tmp_path / "a.mcap", make_recording(0), EMPTY, max_rows=50)
    for row in np.column_stack([whole.times, whole.values]):
        file.put(row)
    file.close()
    assert "The disk is too slow: 'a.mcap' ends at" in file.error
    recording = read_mcap(tmp_path / "a.mcap")
    assert_begins(recording, whole)
    assert 50 <= len(recording) < 400


def test_a_full_disk_is_told(tmp_path, monkeypatch):
    """Fail to write: the recording goes on without a file, and says so."""
    file = RecordingFile(tmp_path / "a.mcap", make_recording(0), EMPTY, 10)
    monkeypatch.setattr(file._file, "flush", lambda: os.write(-1, b""))
    file.put(np.zeros(13))
    file.close()
    assert "'a.mcap' ends here: " in file.error
    file.put(np.zeros(13))


@pytest.mark.slow
def test_a_killed_process_loses_at_most_a_second(tmp_path):
    """Kill a process that records: its file has all frames but those of the last second."""
    process = subprocess.Popen(
        [sys.executable, "-c", RECORD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    steps = 0
    while steps < 1200:
        steps = int(process.stdout.readline())
    os.kill(process.pid, signal.SIGKILL)
    last = steps
    for line in process.stdout.read().split("\n"):
        last = int(line) if line else last
    process.wait()
    (path,) = tmp_path.iterdir()
    recording = read_mcap(path)
    assert not recording.complete
    assert last - 500 <= len(recording) <= last + 50
    assert np.diff(recording.times) == pytest.approx(0.002)
    assert recording.times[0] == pytest.approx(0.002)


def test_a_missing_package_leaves_no_file(monkeypatch, tmp_path):
    """Hide Foxglove's messages: a recording says what to install, and begins no file.

    A recording that is only written, without messages for other programs, needs none of them.
    """
    for module in [name for name in sys.modules if name.startswith("foxglove_schemas_protobuf")]:
        monkeypatch.delitem(sys.modules, module)
    for module in ("images", "scene_messages", "foxglove"):
        monkeypatch.delitem(sys.modules, f"manyworlds.lab.recording.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "foxglove_schemas_protobuf", None)
    whole = make_recording(3)
    with pytest.raises(
        MissingExtraError, match=r"'foxglove_schemas_protobuf.*manyworlds-rl\[lab\]"
    ):
        RecordingFile(tmp_path / "a.mcap", whole, EMPTY, 10)
    assert not (tmp_path / "a.mcap").exists()
    write_mcap(tmp_path / "b.mcap", whole)
    assert_begins(read_mcap(tmp_path / "b.mcap"), whole)
