"""Recordings in MCAP files (https://mcap.dev/spec), which keep what was written if they are cut.

A file has a metadata record `recording`, whose `header` is JSON with the names, and one message per
frame on the topic `state`: the time and the row of values as little-endian float64. A file of a
world that was rebuilt has such a record and a channel of that topic for each segment, which the
header names. The format
is binary because a state has hundreds of doubles per step, all digits of which matter; the header
has the names of the columns. Images of cameras have topics of their own, and so have joints,
transforms and shapes, which other programs show; see `manyworlds.lab.recording.images` and
`manyworlds.lab.recording.scene_messages`.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import mujoco
import numpy as np

from manyworlds.lab.moments.recording import (
    Recording,
    RecordingError,
    index_from_plain,
    join_segments,
)
from manyworlds.lab.pictures.image import JpegImage
from manyworlds.lab.pictures.subscription import Subscription
from manyworlds.lab.world.frames import ModelFrames
from manyworlds.utils.extras import require_extra
from manyworlds.utils.files import atomic_path

if TYPE_CHECKING:
    from mcap.records import Chunk
    from mcap.writer import Writer

    from manyworlds.lab.recording.images import ImageTracks
    from manyworlds.lab.recording.scene_messages import SceneTracks

FLUSH_S = 0.25
"""Period of the writes to the operating system; a killed process loses at most this much."""

_TOPIC = "state"
_ENCODING = "x-float64-le"
_MAX_RATIO = 256  # a recording of a world at rest, packed by LZ4, grows that much when unpacked
_SMALL = 2**25  # bytes unpacked; small recordings may be as regular as they like
_LARGE = 2**31  # bytes unpacked; larger recordings have images, which do not grow
_MAX_COLUMNS = 10**6
_Begin = tuple[Recording, mujoco.MjModel]


class RecordingFile:
    """Writes rows as they come, in its own thread, so that no caller waits for the disk.

    Args:
        path: path of the new file.
        empty: a recording without frames, with the names and types of the rows.
        model: model of the first rows, for messages that other programs show; see
            `manyworlds.lab.recording.scene_messages`.
        max_rows: largest number of rows that wait for the disk.
        streams: cameras whose images are written, too.
        clock: returns the time of an image in the recording [s].
        scene_rate: largest number of messages for other programs per second of the recording [Hz];
            0 for none.

    Raises:
        FileExistsError: there is such a file.
        MissingExtraError: the extra 'lab' is not installed.
    """

    def __init__(
        self,
        path: Path,
        empty: Recording,
        model: mujoco.MjModel,
        max_rows: int,
        streams: Sequence[Subscription[JpegImage]] = (),
        clock: Callable[[JpegImage], float] = lambda image: image.time,
        scene_rate: float = 0.0,
    ) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.error = ""
        """Reason why the file ends before the recording does; empty if it does not."""
        self._max_rows = max_rows
        self._rows: queue.SimpleQueue[np.ndarray | _Begin] = queue.SimpleQueue()
        self._closing = threading.Event()
        tracks = require_extra("manyworlds.lab.recording.images", "lab")  # before there is a file
        self._stream = path.open("xb")
        self._file = _Frames(self._stream, empty, model, scene_rate)
        frames = ModelFrames(model)
        self._images: ImageTracks = tracks.ImageTracks(self._file.writer, streams, clock, frames)
        self._thread = threading.Thread(target=self._run, name="manyworlds-recorder", daemon=True)
        self._thread.start()

    def put(self, row: np.ndarray) -> None:
        """Queue a row: the time, and the values; it must not change afterwards."""
        if self.error:
            return
        if self._rows.qsize() >= self._max_rows:
            self.error = f"The disk is too slow: '{self.path.name}' ends at {row[0]:.3f} s."
            return
        self._rows.put(row)

    def begin(self, empty: Recording, model: mujoco.MjModel) -> None:
        """Begin a new segment of a model, whose rows have the names and types of a recording."""
        self._rows.put((empty, model))

    @property
    def num_images(self) -> dict[str, int]:
        """Number of images in the file, by camera."""
        return dict(self._images.num_written)

    def close(self) -> None:
        """Write the remaining rows and the end of the file."""
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            with self._stream:
                closing = False
                while not closing:
                    closing = self._closing.wait(FLUSH_S)
                    while not self._rows.empty():
                        item = self._rows.get()
                        if isinstance(item, tuple):
                            self._begin(*item)
                        else:
                            self._file.add(item)
                    self._images.write()
                    self._file.flush()
                self._file.finish()
        except OSError as error:
            self.error = f"'{self.path.name}' ends here: {error}."

    def _begin(self, empty: Recording, model: mujoco.MjModel) -> None:
        self._file.begin(empty, model)
        self._images.frames = ModelFrames(model)


class _Frames:
    """Records of one file.

    Args:
        stream: stream to write to.
        recording: recording that the header of the first segment describes.
        model: its model; None if it is not there.
        scene_rate: largest number of messages for other programs per second [Hz]; 0 for none.
    """

    def __init__(
        self,
        stream: BinaryIO,
        recording: Recording,
        model: mujoco.MjModel | None = None,
        scene_rate: float = 0.0,
    ) -> None:
        library = require_extra("mcap.writer", "lab")
        self.writer: Writer = library.Writer(stream, compression=library.CompressionType.LZ4)
        self.writer.start(profile="manyworlds")
        self._count = self._segments = 0
        self._scene: SceneTracks | None = None
        if scene_rate > 0.0:
            tracks = require_extra("manyworlds.lab.recording.scene_messages", "lab")
            self._scene = tracks.SceneTracks(self.writer, scene_rate)
        self.begin(recording, model)
        self.flush()

    def begin(self, recording: Recording, model: mujoco.MjModel | None = None) -> None:
        if self._scene is not None:
            self._scene.begin(model)
        self._channel = self.writer.register_channel(_TOPIC, _ENCODING, 0)
        self._segments += 1
        header = {
            "version": 1,
            "segment": self._segments,
            "channel": self._channel,
            "model_hash": recording.model_hash,
            "joint_types": dict(recording.joint_types),
            "index": {field: dict(elements) for field, elements in recording.index.items()},
            "width": recording.values.shape[1],
        }
        self.writer.add_metadata("recording", {"header": json.dumps(header)})

    def add(self, row: np.ndarray) -> None:
        nanoseconds = max(0, round(float(row[0]) * 1e9))
        data = row.astype("<f8", copy=False).tobytes()
        self.writer.add_message(self._channel, nanoseconds, data, nanoseconds, self._count)
        self._count += 1
        if self._scene is not None:
            self._scene.add(row)

    def flush(self) -> None:
        self.writer.flush()

    def finish(self) -> None:
        self.writer.finish()


def write_mcap(
    path: Path,
    recording: Recording,
    models: Mapping[str, mujoco.MjModel] | None = None,
    scene_rate: float = 0.0,
) -> None:
    """Write a recording; an earlier file is replaced as a whole.

    Args:
        path: path of the file.
        recording: the recording.
        models: models of segments, by hash, for messages that other programs show; segments of
            other models have none.
        scene_rate: see `RecordingFile`.
    """
    models = models or {}
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        file = _Frames(stream, recording, models.get(recording.model_hash), scene_rate)
        for segment in recording.segments:
            if segment is not recording:
                file.begin(segment, models.get(segment.model_hash))
            for row in np.column_stack([segment.times, segment.values]):
                file.add(row)
        file.finish()


def read_mcap(path: Path) -> Recording:
    """Read a recording, also one whose file was cut off or is damaged at its end.

    Raises:
        RecordingError: it is no recording.
    """
    records = require_extra("mcap.records", "lab")
    headers: list[dict[str, Any]] = []
    rows: dict[int, list[bytes]] = defaultdict(list)
    states: set[int] = set()  # channels of states; others have images
    complete = False
    try:
        for record in _read_records(path):
            if isinstance(record, records.Metadata) and record.name == "recording":
                headers.append(json.loads(record.metadata["header"]))
            elif isinstance(record, records.Channel) and record.topic == _TOPIC:
                states.add(record.id)
            elif isinstance(record, records.Message) and record.channel_id in states:
                rows[record.channel_id].append(record.data)
        complete = True
    except RecordingError:
        raise
    except Exception as error:  # of many types, depending on the bytes
        if not headers:
            raise RecordingError(f"it is no recording: {error}.", path.name) from error
    try:
        first = 0
        if len(headers) == 1 and rows:
            # The header of a file from before there were segments does not name its one channel.
            (first,) = rows
        segments = [_decode(h, rows[h.get("channel", first)], complete) for h in headers]
        recording = join_segments(segments)
        ends = [segment.times[[0, -1]] for segment in recording.segments if len(segment)]
        if any(end[1] >= start[0] for end, start in itertools.pairwise(ends)):
            raise ValueError("times do not ascend")
        return recording
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise RecordingError(f"its header and its frames disagree: {error}.", path.name) from error


def _read_records(path: Path) -> Iterator[Any]:
    """Yield the records of a file, those in its chunks, too.

    Raises:
        McapError, ValueError: the file is damaged here, or it ends.
        RecordingError: its chunks are larger than a recording of this size can be.
    """
    reader = require_extra("mcap.stream_reader", "lab")
    records = require_extra("mcap.records", "lab")
    size = path.stat().st_size
    most = max(_SMALL, min(_MAX_RATIO * size, _LARGE), 2 * size)
    left = most
    with path.open("rb") as stream:
        source = reader.StreamReader(
            stream, emit_chunks=True, validate_crcs=True, record_size_limit=size
        )
        for record in source.records:
            if not isinstance(record, records.Chunk):
                yield record
                continue
            left -= record.uncompressed_size
            if left < 0:
                raise RecordingError(
                    f"it has {size} bytes, and more than {most} when it is unpacked, which no "
                    "recording has.",
                    path.name,
                )
            content = _unpack(record)
            if len(content) != record.uncompressed_size:
                raise ValueError("a chunk has another size than it says")
            whole = dataclasses.replace(record, compression="", data=content)
            yield from reader.breakup_chunk(whole, validate_crc=True)


def _unpack(chunk: Chunk) -> bytes:
    """Return the content of a chunk, and at most one byte more than its header says."""
    most = chunk.uncompressed_size + 1
    if chunk.compression == "lz4":
        return require_extra("lz4.frame", "lab").LZ4FrameDecompressor().decompress(chunk.data, most)
    if chunk.compression == "zstd":
        packed = require_extra("zstandard", "lab").ZstdDecompressor().stream_reader(chunk.data)
        return packed.read(most)
    return chunk.data


def _decode(header: dict[str, Any], rows: list[bytes], complete: bool) -> Recording:
    width = int(header["width"])
    if not 0 <= width <= _MAX_COLUMNS:
        raise ValueError(f"it has {width} columns, and {_MAX_COLUMNS} are allowed")
    table = np.frombuffer(b"".join(rows), "<f8").reshape(len(rows), 1 + width)
    index = index_from_plain(header["index"], width)
    used = np.zeros(1 + width, bool)
    used[0] = True
    for elements in index.values():
        for start, count in elements.values():
            used[1 + start : 1 + start + count] = True
    if not np.isfinite(table[:, used]).all():
        raise ValueError("numbers are not finite")
    times = table[:, 0].copy()
    if (np.diff(times) <= 0.0).any():
        raise ValueError("times do not ascend")
    kinds = {str(name): str(kind) for name, kind in header["joint_types"].items()}
    return Recording(times, table[:, 1:], index, kinds, str(header["model_hash"]), complete)
