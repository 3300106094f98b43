"""Snapshots in shared memory: one process writes them, others read the newest one.

The memory has no name: readers get its file descriptor from the writer, and the system frees it
when the last process that has it ends, in whatever way.
"""

from __future__ import annotations

import dataclasses
import json
import mmap
import os
import struct
import tempfile
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from manyworlds.lab.loop.snapshot import Layout, Snapshot

_SLOTS = 8
"""Number of snapshots in the memory; a reader has the time of all but one of them for a copy."""
_TEXT = 8192
"""Space for the mode, the stepper, the fault and the warnings of a snapshot [bytes]."""
_NEWEST = struct.Struct("<q")
_SEQUENCE = struct.Struct("<q")
_HEAD = struct.Struct("<qqqqdq")  # frame id, step, model version, length of the text, time, paused
_SLOT_HEAD = 64  # sequence number and head; keeps the block aligned

Texts = tuple[str, str, str, Mapping[str, int]]
"""Mode, stepper, fault and warnings of a snapshot."""


class _Memory:
    """Memory for snapshots of one layout: the number of the newest one, and slots.

    Each slot has a sequence number, which is odd while the slot is written.
    """

    def __init__(self, descriptor: int, size: int, access: int) -> None:
        self._values = size
        length = self.length(size)
        self.memory = mmap.mmap(descriptor, length, access=access)
        self._stride = self._slot_size(size)
        self.blocks = [
            np.frombuffer(self.memory, np.float64, size, self.start(i) + _SLOT_HEAD + _TEXT)
            for i in range(_SLOTS)
        ]
        self._lock = threading.Lock()

    @staticmethod
    def _slot_size(size: int) -> int:
        return -(-(_SLOT_HEAD + _TEXT + 8 * size) // 64) * 64

    @classmethod
    def length(cls, size: int) -> int:
        """Return the length of the memory for blocks of a number of values [bytes]."""
        return 64 + _SLOTS * cls._slot_size(size)

    def start(self, slot: int) -> int:
        """Return the place of a slot in the memory."""
        return 64 + slot * self._stride

    def fence(self) -> None:
        """Keep the order of the accesses before and after, on processors that change it, too."""
        lock = self._lock
        lock.acquire()
        lock.release()  # what is before it stays before the next acquisition
        lock.acquire()
        lock.release()

    def close(self) -> None:
        """Close this process's view of the memory."""
        self.blocks.clear()
        self.memory.close()


class SnapshotWriter:
    """Copies each snapshot into the shared memory; one thread writes, and never waits.

    Args:
        layout: layout of the snapshots' blocks.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        size = max((place.stop for place, _ in layout.values()), default=0)
        self.descriptor = _anonymous_file(_Memory.length(size))
        """File descriptor of the memory, for readers."""
        self._memory = _Memory(self.descriptor, size, mmap.ACCESS_WRITE)
        self._count = 0
        self._texts: Texts = "", "", "", {}
        self._text = b""

    def write(self, snapshot: Snapshot) -> None:
        """Make a snapshot the newest one."""
        memory = self._memory
        raw = memory.memory
        slot = self._count % _SLOTS
        start = memory.start(slot)
        turn = 2 * (self._count // _SLOTS)
        text = self._encoded(snapshot)
        _SEQUENCE.pack_into(raw, start, turn + 1)
        memory.fence()
        head = (snapshot.frame_id, snapshot.step, snapshot.model_version, len(text))
        _HEAD.pack_into(raw, start + 8, *head, snapshot.time, snapshot.paused)
        raw[start + _SLOT_HEAD : start + _SLOT_HEAD + len(text)] = text
        memory.blocks[slot][:] = snapshot.block
        memory.fence()
        _SEQUENCE.pack_into(raw, start, turn + 2)
        memory.fence()
        self._count += 1
        _NEWEST.pack_into(raw, 0, self._count)

    def close(self) -> None:
        """Give up the memory; readers keep their view of it."""
        if self.descriptor >= 0:
            self._memory.close()
            os.close(self.descriptor)
            self.descriptor = -1

    def _encoded(self, snapshot: Snapshot) -> bytes:
        """Return the texts of a snapshot, which rarely change, as bytes."""
        texts = (snapshot.mode, snapshot.stepper, snapshot.fault, snapshot.warnings)
        if texts != self._texts:
            mode, stepper, fault, warnings = self._texts = texts
            # MuJoCo's kinds of warnings are few; a fault may quote anything.
            told = (mode, stepper[:200], fault[: _TEXT // 12], dict(warnings))
            self._text = json.dumps(told).encode()
        return self._text


class SnapshotReader:
    """Reads the newest snapshot from shared memory; any number of threads and processes read.

    Args:
        descriptor: file descriptor of the memory; the reader closes it.
        layout: layout of the snapshots' blocks.
    """

    def __init__(self, descriptor: int, layout: Layout) -> None:
        self._layout = layout
        size = max((place.stop for place, _ in layout.values()), default=0)
        self._memory = _Memory(descriptor, size, mmap.ACCESS_READ)
        os.close(descriptor)
        self._lock = threading.Lock()
        self._count = 0
        self._snapshot: Snapshot | None = None
        self._text: tuple[bytes, Texts] = b"", ("", "", "", {})

    def read(self) -> Snapshot:
        """Return the newest snapshot: the same object until there is another one.

        Raises:
            RuntimeError: nothing was written yet.
        """
        with self._lock:
            while (count := _NEWEST.unpack_from(self._memory.memory)[0]) != self._count:
                self._memory.fence()
                snapshot = self._copy(count - 1)
                if snapshot is not None:
                    self._count = count
                    self._snapshot = snapshot
            if self._snapshot is None:
                raise RuntimeError("The shared memory has no snapshot yet.")
            return self._snapshot

    def close(self) -> None:
        """Close this process's view of the memory."""
        self._memory.close()

    def _copy(self, number: int) -> Snapshot | None:
        """Return the snapshot of a number; None if it was replaced while it was copied."""
        memory = self._memory
        raw = memory.memory
        slot = number % _SLOTS
        turn = 2 * (number // _SLOTS) + 2
        start = memory.start(slot)
        frame_id, step, version, length, time, paused = _HEAD.unpack_from(raw, start + 8)
        text = raw[start + _SLOT_HEAD : start + _SLOT_HEAD + min(max(length, 0), _TEXT)]
        block = memory.blocks[slot].copy()
        memory.fence()
        if _SEQUENCE.unpack_from(raw, start)[0] != turn:
            return None
        if text != self._text[0]:
            self._text = text, json.loads(text)
        mode, stepper, fault, warnings = self._text[1]
        block.flags.writeable = False
        return Snapshot(
            frame_id=frame_id,
            step=step,
            time=time,
            paused=bool(paused),
            mode=mode,
            stepper=stepper,
            fault=fault,
            warnings=warnings,
            model_version=version,
            block=block,
            layout=self._layout,
        )


class SnapshotPublisher:
    """Publishes the snapshots of a loop from the first reader on, also those of rebuilt worlds."""

    def __init__(self) -> None:
        self._writer: SnapshotWriter | None = None

    def open(self, snapshot: Snapshot) -> tuple[int, Layout]:
        """Return a new file descriptor of the memory, which the caller closes, and the layout.

        Args:
            snapshot: the present snapshot; call it between two steps.
        """
        if self._writer is None:
            self._writer = SnapshotWriter(snapshot.layout)
            self._writer.write(snapshot)
        return os.dup(self._writer.descriptor), self._writer.layout

    def publish(self, snapshot: Snapshot) -> None:
        """Write a snapshot for the readers, if there are any."""
        if self._writer is None:
            return
        if snapshot.layout is not self._writer.layout:  # the world was rebuilt
            self._writer.close()
            self._writer = SnapshotWriter(snapshot.layout)
        self._writer.write(snapshot)

    def close(self) -> None:
        """Give up the memory."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def layout_to_plain(layout: Layout) -> dict[str, object]:
    """Return a layout as plain data."""
    return {name: [place.start, place.stop, *shape] for name, (place, shape) in layout.items()}


def layout_from_plain(plain: Mapping[str, list[int]]) -> Layout:
    """Return the layout that `layout_to_plain` described."""
    return {
        name: (slice(start, stop), tuple(shape)) for name, (start, stop, *shape) in plain.items()
    }


_FIELDS = tuple(field.name for field in dataclasses.fields(Snapshot) if field.name != "layout")


SNAPSHOT_TOPIC = b"state/snapshot"
"""Topic under which the server for programs publishes packed snapshots."""

PlainSnapshot = dict[str, Any]
"""Snapshot as plain data and one array."""


def pack_snapshot(snapshot: Snapshot, known_version: int = -1) -> PlainSnapshot:
    """Return a snapshot as plain data and one array.

    Args:
        snapshot: the snapshot.
        known_version: version of the model whose layout is not needed.
    """
    plain = {name: getattr(snapshot, name) for name in _FIELDS}
    plain["driver"] = plain.pop("stepper")  # the protocol's name
    if snapshot.model_version != known_version:
        plain["layout"] = layout_to_plain(snapshot.layout)
    return plain


def unpack_snapshot(plain: PlainSnapshot, known: Layout | None = None) -> Snapshot:
    """Return the snapshot that `pack_snapshot` described.

    Args:
        plain: the description.
        known: layout, if it has none.
    """
    if "layout" in plain:
        known = layout_from_plain(plain["layout"])
    assert known is not None
    fields = {name: value for name, value in plain.items() if name != "driver"}
    return Snapshot(**{**fields, "stepper": plain["driver"], "layout": known})


def _anonymous_file(length: int) -> int:
    """Return the descriptor of a file in memory that has no name."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("manyworlds-snapshots", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, length)
    return descriptor
