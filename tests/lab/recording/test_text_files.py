"""Recordings as CSV and JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nst

from manyworlds.lab.moments.recording import Recording, RecordingError
from manyworlds.lab.recording.text_files import read_csv, read_json, write_csv, write_json

names = st.text(st.characters(exclude_categories=["C"], exclude_characters="[]"), min_size=1)
names = names.map(str.strip).filter(lambda name: name and name.lower() not in ("time", "timestamp"))


@st.composite
def recordings(draw) -> Recording:
    """Some joints of any names and widths over some frames."""
    joints = draw(st.dictionaries(names, st.sampled_from([1, 4, 7]), min_size=1, max_size=4))
    starts = np.cumsum([0, *joints.values()]).tolist()
    index = {"qpos": dict(zip(joints, zip(starts, joints.values(), strict=False), strict=True))}
    if draw(st.booleans()):
        index["camera"] = {"camera": (starts[-1], 6)}
    count, width = draw(st.integers(1, 5)), starts[-1] + 6 * ("camera" in index)
    values = draw(nst.arrays(float, (count, width), elements=st.floats(-1e6, 1e6)))
    ticks = draw(st.sets(st.integers(0, 10**9), min_size=count, max_size=count))
    return Recording(np.array(sorted(ticks)) * 1e-6, values, index)


@settings(max_examples=60)
@given(recordings())
def test_csv_keeps_names_and_eight_decimals(tmp_path_factory, recording):
    """Write and read back; a second time changes nothing."""
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    write_csv(path, recording)
    text = path.read_text()
    again = read_csv(path)
    assert again.joints == recording.joints and again.times == pytest.approx(recording.times)
    for field in recording.index:
        for name in recording.index[field]:
            columns = recording.columns(field, name)
            assert again.columns(field, name) == pytest.approx(columns, abs=5.1e-9, rel=1e-15)
    write_csv(path, again)
    assert path.read_text() == text


@settings(max_examples=60)
@given(recordings())
def test_json_keeps_every_digit(tmp_path_factory, recording):
    """Write and read back."""
    path = tmp_path_factory.mktemp("json") / "a.json"
    write_json(path, recording)
    again = read_json(path)
    assert np.array_equal(again.times, recording.times)
    for field in recording.index:
        for name in recording.index[field]:
            assert np.array_equal(again.columns(field, name), recording.columns(field, name))


def test_csv_has_its_format(tmp_path):
    """Write a hinge, a free joint and a camera; the text is that of the format."""
    index = {"qpos": {"knee": (0, 1), "root": (1, 7)}, "camera": {"camera": (8, 6)}}
    recording = Recording(np.array([0.5]), np.arange(14.0)[None] / 3, index)
    write_csv(tmp_path / "a.csv", recording)
    header, row = (tmp_path / "a.csv").read_text().splitlines()
    assert header == (
        "time,knee,root[0],root[1],root[2],root[3],root[4],root[5],root[6],"
        "cam_x,cam_y,cam_z,cam_pitch,cam_yaw,cam_roll"
    )
    assert row.startswith("0.500000,0.00000000,0.33333333,0.66666667,1.00000000")


@pytest.mark.parametrize(
    ("text", "times", "joints"),
    [
        ("time,hip\n0.1,1\n0.2,2\n", [0.1, 0.2], ["hip"]),
        ("hip,TimeStamp\n1,0.1\n2,0.3\n", [0.1, 0.3], ["hip"]),
        ("\ufeffTIME,hip\r\n0,1\r\n\r\n1,2\r\n", [0.0, 1.0], ["hip"]),
        ("hip,knee\n1,2\n3,4\n5,6\n", [0.0, 0.002, 0.004], ["hip", "knee"]),
        ("b[0],b[1],b[2],b[3],t[0]\n1,0,0,0,5\n", [0.0], ["b", "t[0]"]),
        ("x[0],x[1]\n1,0\n", [0.0], ["x[0]", "x[1]"]),
        ('"a,b", c \n1,2\n', [0.0], ["a,b", "c"]),
    ],
)
def test_tables_of_others_are_read(tmp_path, text, times, joints):
    """Read tables with and without times, in any order."""
    (tmp_path / "a.csv").write_text(text, newline="")
    recording = read_csv(tmp_path / "a.csv")
    assert recording.times == pytest.approx(times) and recording.joints == joints


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "no joints"),
        ("time\n1\n", 1, "no joints"),
        ("time,hip\n", 1, "no rows"),
        ("hip,hip\n1,2\n", 1, "need unique names"),
        ("hip,\n1,2\n", 1, "need unique names"),
        ("time,hip\n0,1\n1,x\n", 3, "'x' of 'hip' is not a finite number"),
        ("time,hip\n0,1\n\n1,nan\n", 4, "'nan' of 'hip'"),
        ("time,hip\n0,1\n1\n", 3, "1 columns, but the first line has 2"),
        ("time,hip\n0,1\n2,1\n1,1\n", 4, "times must ascend"),
        ("b[0],x,b[1],b[2],b[3]\n1,0,0,0,0\n", 1, "must be adjacent"),
        ('time,hip\n0,"1\n', 2, "unexpected end of data"),
    ],
)
def test_bad_tables_name_the_line(tmp_path, text, line, message):
    """Read tables that are none."""
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(RecordingError, match=message) as info:
        read_csv(tmp_path / "bad.csv")
    assert (info.value.file, info.value.line) == ("bad.csv", line)
    assert str(info.value).startswith(f"bad.csv, line {line}: ")


def test_text_in_other_codes_is_refused(tmp_path):
    """Read bytes that are no UTF-8, in both formats."""
    for name, read in (("a.csv", read_csv), ("a.json", read_json)):
        (tmp_path / name).write_bytes(b"\xff\xfe\x00hip")
        with pytest.raises(RecordingError):
            read(tmp_path / name)


def test_json_of_others_is_read(tmp_path):
    """Read keys in another case, velocities, and a camera."""
    frame = {
        "Timestamp": 1.5,
        "jointStates": {"Hip": {"qPos": [0.25], "qVel": [2.0]}, "Weld": {"qPos": []}},
        "cameraPosition": {"X": 1, "Y": 2, "Z": 3},
        "CameraRotation": {"pitch": 4, "yaw": 5, "roll": 6},
        "bHasCameraData": True,
    }
    (tmp_path / "a.json").write_text(json.dumps({"frames": [frame]}))
    recording = read_json(tmp_path / "a.json")
    assert recording.times.tolist() == [1.5] and recording.joints == ["Hip"]
    assert recording.columns("qvel", "Hip").tolist() == [[2.0]]
    assert recording.columns("camera", "camera").tolist() == [[1, 2, 3, 4, 5, 6]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"Frames": [\n{', "line 2: "),
        ("[]", "no frames"),
        ('{"Frames": []}', "no frames"),
        ('{"Frames": [{"jointStates": {"a": {"qPos": [1]}}}]}', "frame 0 is invalid"),
        (
            '{"Frames": [{"timestamp": 0, "jointStates": {"a": {"qPos": [1]}}},'
            ' {"timestamp": 1, "jointStates": {}}]}',
            "frame 1 is invalid: its joints differ from those of the first",
        ),
        ('{"Frames": [{"timestamp": 0, "jointStates": {"a": {"qPos": [NaN]}}}]}', "finite"),
    ],
)
def test_bad_json_says_where(tmp_path, text, message):
    """Read files that are none."""
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(RecordingError, match=message):
        read_json(tmp_path / "bad.json")
