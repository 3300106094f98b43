"""Small files that grow when they are read: they are refused, and memory stays small."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import lz4.frame
import numpy as np
import pytest
import zstandard
from mcap.data_stream import RecordBuilder
from mcap.records import Chunk
from mcap.writer import CompressionType, Writer

from tests.memory import refusal_and_peak

MIB = 2**20
MAGIC = b"\x89MCAP0\r\n"
READ = "from pathlib import Path; from manyworlds.lab.recording.mcap_files import read_mcap"


def write_zeros(path: Path, compression: CompressionType, megabytes: int, **header: object) -> None:
    """Write a recording whose frames are zeros."""
    told = {"version": 1, "model_hash": "", "joint_types": {}, "index": {}, "width": 0}
    with path.open("wb") as stream:
        writer = Writer(stream, compression=compression)
        writer.start()
        channel = writer.register_channel("state", "x-float64-le", 0)
        writer.add_metadata(
            "recording", {"header": json.dumps(told | {"channel": channel} | header)}
        )
        zeros = bytes(MIB)
        for number in range(megabytes):
            writer.add_message(channel, number, zeros, number)
        writer.finish()


def test_chunks_that_grow_are_refused(tmp_path):
    """Pack half a gigabyte of zeros: reading ends at the size that such a file may have."""
    path = tmp_path / "zeros.mcap"
    write_zeros(path, CompressionType.ZSTD, 512)
    assert path.stat().st_size < MIB
    text, growth = refusal_and_peak(READ, "read_mcap(Path(sys.argv[1]))", path)
    assert "when it is unpacked, which no recording has" in text
    assert growth < 128 * MIB


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_chunks_that_lie_are_not_unpacked(compression, tmp_path):
    """Say that a chunk of many zeros is small: the file is damaged there."""
    path = tmp_path / "zeros.mcap"
    kinds = {"zstd": zstandard.compress, "lz4": lz4.frame.compress}
    builder = RecordBuilder()
    content = kinds[compression](bytes(512 * MIB))
    Chunk(
        compression=compression,
        data=content,
        message_start_time=0,
        message_end_time=0,
        uncompressed_crc=0,
        uncompressed_size=100,
    ).write(builder)
    path.write_bytes(MAGIC + builder.end())
    text, growth = refusal_and_peak(READ, "read_mcap(Path(sys.argv[1]))", path)
    assert "a chunk has another size than it says" in text
    assert growth < 64 * MIB


def test_columns_that_are_not_there_are_refused(tmp_path):
    """Describe a billion columns without a frame: nothing of that size is made."""
    path = tmp_path / "wide.mcap"
    wide = {"index": {"qpos": {"joint": [0, 10**9]}}, "width": 10**9}
    write_zeros(path, CompressionType.NONE, 0, **wide)
    text, growth = refusal_and_peak(READ, "read_mcap(Path(sys.argv[1]))", path)
    assert "it has 1000000000 columns, and 1000000 are allowed" in text
    assert growth < 64 * MIB


STATES = """
import mujoco
from pathlib import Path
from manyworlds.lab import LiveLab, world_from_spec
states = LiveLab(world_from_spec(mujoco.MjSpec())).states
"""


def test_states_that_grow_are_refused(tmp_path):
    """Pack many zeros as a saved state: it is not unpacked."""
    path = tmp_path / "zeros.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("meta.npy", npy(np.array("{}")))
        with archive.open("state.npy", "w", force_zip64=True) as part:
            part.write(npy(np.empty(0)))
            for _ in range(256):
                part.write(bytes(MIB))
    assert path.stat().st_size < 2 * MIB
    text, growth = refusal_and_peak(STATES, "states.read(Path(sys.argv[1]))", path)
    assert "it has 256 MiB unpacked, and 64 are allowed" in text
    assert growth < 64 * MIB


def npy(array: np.ndarray) -> bytes:
    """Return the content of a file of an array."""
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()
