"""Files of recordings, of which large ones are read in a process of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from manyworlds.lab.moments.recording import Recording, RecordingError
from manyworlds.lab.recording import reading
from manyworlds.lab.recording.mcap_files import write_mcap
from manyworlds.lab.recording.reading import SMALL, load_recording
from manyworlds.lab.recording.text_files import write_csv, write_json
from tests.lab.recording.test_mcap_files import make_recording
from tests.memory import refusal_and_peak

WRITERS = {".mcap": write_mcap, ".csv": write_csv, ".json": write_json}
LOAD = "from pathlib import Path; from manyworlds.lab.recording.reading import load_recording"


def assert_equal(one: Recording, other: Recording) -> None:
    """Check that two recordings have the same segments, bit for bit."""
    for mine, theirs in zip(one.segments, other.segments, strict=True):
        assert np.array_equal(mine.times, theirs.times)
        assert np.array_equal(mine.values, theirs.values)
        for name in ("index", "joint_types", "model_hash", "complete"):
            assert getattr(mine, name) == getattr(theirs, name)


@pytest.mark.parametrize("suffix", WRITERS)
def test_large_files_are_read_elsewhere(suffix, tmp_path, monkeypatch):
    """Read a large file: this process decodes nothing, and gets the same numbers."""
    whole = make_recording(6000)
    if suffix == ".mcap":
        later = make_recording(100)
        later = replace(later, times=later.times + 100.0, model_hash="other")
        whole = replace(whole, later=(later,))
    path = tmp_path / f"a{suffix}"
    WRITERS[suffix](path, whole)
    assert path.stat().st_size > SMALL
    expected = reading._read(path, 0.002)
    monkeypatch.setattr(reading, "_read", lambda path, timestep: pytest.fail("decoded here"))
    assert_equal(load_recording(path, 0.002), expected)


def test_errors_come_back(tmp_path):
    """Damage a line of a large table: the error names it, as that of a small one does."""
    path = tmp_path / "a.csv"
    write_csv(path, make_recording(6000))
    lines = path.read_text().splitlines()
    lines[4000] = lines[4000].replace(".", "x", 1)
    path.write_text("\n".join(lines))
    with pytest.raises(RecordingError, match=r"^a\.csv, line 4001: '.*' of 'time' is not a finite"):
        load_recording(path, 0.002)
    (tmp_path / "b.json").write_bytes(b" " * (SMALL + 1))
    with pytest.raises(RecordingError, match=r"^b\.json, line 1: Expecting value"):
        load_recording(tmp_path / "b.json", 0.002)


def test_texts_that_need_much_memory_are_decoded_elsewhere(tmp_path):
    """Write a text of very many lists: this process needs no memory for it."""
    path = tmp_path / "lists.json"
    path.write_bytes(b'{"Frames": [' + b"[]," * 1_500_000 + b"[]]}")
    text, growth = refusal_and_peak(LOAD, "load_recording(Path(sys.argv[1]), 0.002)", path)
    assert "it has no frames of joint states" in text
    assert growth < 32 * 2**20


def test_memory_has_a_bound(tmp_path):
    """Lower the bound of this process and its children: a text that needs more is refused."""
    path = tmp_path / "lists.json"
    path.write_bytes(b"[" + b"[]," * 10_000_000 + b"[]]")
    limit = "import resource; resource.setrlimit(resource.RLIMIT_DATA, (2**29, 2**29))"
    text, growth = refusal_and_peak(
        f"{LOAD}\n{limit}", "load_recording(Path(sys.argv[1]), 0.002)", path
    )
    assert "reading it needs more than 4 GiB of memory" in text
    assert growth < 32 * 2**20
