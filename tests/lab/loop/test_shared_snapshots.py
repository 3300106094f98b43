"""Snapshots in shared memory."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import mujoco
import numpy as np
import pytest

from manyworlds.lab import LabCfg, LiveLab, world_from_spec
from manyworlds.lab.loop.shared_snapshots import (
    SnapshotReader,
    SnapshotWriter,
    layout_from_plain,
    layout_to_plain,
)
from manyworlds.lab.loop.snapshot import FIELDS, Snapshot
from tests.lab.conftest import ARM

SIZE = 6000
LAYOUT = {"qpos": (slice(0, SIZE), (SIZE,))}


def numbered(number: int) -> Snapshot:
    """Snapshot all of whose values are its number."""
    return Snapshot(
        frame_id=number,
        step=number,
        time=float(number),
        paused=bool(number % 2),
        mode="live",
        stepper="physics",
        fault=f"fault {number}" if number % 3 else "",
        warnings={"contactfull": number},
        model_version=number,
        block=np.full(SIZE, float(number)),
        layout=LAYOUT,
    )


def check(snapshot: Snapshot) -> None:
    """All parts of the snapshot are of one moment."""
    number = snapshot.frame_id
    assert (snapshot.block == number).all(), (number, np.unique(snapshot.block))
    assert snapshot.step == snapshot.time == snapshot.model_version == number
    assert snapshot.paused == bool(number % 2)
    assert snapshot.fault == (f"fault {number}" if number % 3 else "")
    assert snapshot.warnings == {"contactfull": number}


def test_snapshots_are_equal_bit_for_bit():
    """Run a world, also with values that are no numbers: a reader gets each field's bits."""
    lab = LiveLab(world_from_spec(mujoco.MjSpec.from_string(ARM)), LabCfg(mode="direct"))
    writer = SnapshotWriter(lab.snapshot.layout)
    layout = layout_from_plain(layout_to_plain(writer.layout))
    reader = SnapshotReader(os.dup(writer.descriptor), layout)
    with pytest.raises(RuntimeError, match="no snapshot"):
        reader.read()
    for _ in range(30):
        sent = lab.step()
        writer.write(sent)
        got = reader.read()
        assert got.block.tobytes() == sent.block.tobytes()
        assert all(getattr(got, name).shape == getattr(sent, name).shape for name in FIELDS)
        names = set(sent.__dataclass_fields__) - {"block", "layout"}
        assert all(getattr(got, name) == getattr(sent, name) for name in names)
        with pytest.raises(ValueError, match="read-only"):
            got.qpos[:] = 0.0
    assert reader.read() is got
    writer.close()
    assert reader.read() is got, "the writer's end does not take the memory from readers"
    reader.close()
    lab.stop()


def test_long_texts_are_cut():
    """Write a fault as long as a traceback, with characters of several bytes: it is cut."""
    writer = SnapshotWriter(LAYOUT)
    reader = SnapshotReader(os.dup(writer.descriptor), LAYOUT)
    snapshot = numbered(1)
    object.__setattr__(snapshot, "fault", "ü" * 100_000)
    writer.write(snapshot)
    assert set(reader.read().fault) == {"ü"} and reader.read().block[-1] == 1.0
    writer.close()


READER = """
import sys, time
from manyworlds.lab.loop.shared_snapshots import SnapshotReader
from tests.lab.loop.test_shared_snapshots import LAYOUT, check
reader = SnapshotReader(int(sys.argv[1]), LAYOUT)
print("ready", flush=True)
seen, last, end = 0, -1, time.monotonic() + 2.0
while time.monotonic() < end:
    snapshot = reader.read()
    check(snapshot)
    assert snapshot.frame_id >= last
    seen += snapshot.frame_id != last
    last = snapshot.frame_id
print(seen)
"""


@pytest.mark.slow
def test_no_reader_sees_a_torn_snapshot():
    """Write as fast as possible while a process and two threads read: each is of one moment."""
    writer = SnapshotWriter(LAYOUT)
    writer.write(numbered(0))
    process = subprocess.Popen(
        [sys.executable, "-c", READER, str(writer.descriptor)],
        pass_fds=[writer.descriptor],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    reader = SnapshotReader(os.dup(writer.descriptor), LAYOUT)
    stop, errors = threading.Event(), []

    def read() -> None:
        try:
            while not stop.is_set():
                check(reader.read())
        except AssertionError as error:
            errors.append(error)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    number = 0
    while process.poll() is None:
        number += 1
        writer.write(numbered(number))
    stop.set()
    for thread in threads:
        thread.join()
    assert process.returncode == 0 and not errors
    assert number > 1000 and int(process.stdout.read()) > 10
    writer.close()
