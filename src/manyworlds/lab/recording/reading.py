"""Recordings of files; large ones are read in a process of their own.

There, reading slows no world, and a file that needs more memory than there may be ends that process
alone. The program is `python -m manyworlds.lab.recording.reading SOURCE TARGET TIMESTEP`: it writes
the arrays of the recording to TARGET, an NPZ file, or an error as JSON to the standard output.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from manyworlds.lab.moments.recording import Recording, RecordingError, index_from_plain
from manyworlds.lab.recording.mcap_files import read_mcap
from manyworlds.lab.recording.text_files import read_csv, read_json
from manyworlds.utils.extras import require_extra
from manyworlds.utils.platforms import limit_memory, lower_priority

SMALL = 2**18
"""Size of a file up to which it is read at once [bytes]."""
MAX_MEMORY = 4 * 2**30
"""Largest memory for reading a file [bytes]."""
_TOO_MUCH = f"reading it needs more than {MAX_MEMORY // 2**30} GiB of memory."


def load_recording(path: Path, timestep: float) -> Recording:
    """Read a file in the format of its suffix: `.mcap`, `.csv` or `.json`.

    Args:
        path: path of the file.
        timestep: time between rows of a CSV file without times [s].

    Raises:
        RecordingError: it is no recording, or reading it needs too much memory.
        MissingExtraError: it is an MCAP file, and the extra 'lab' is not installed.
    """
    if path.stat().st_size <= SMALL:
        return _read(path, timestep)
    if path.suffix == ".mcap":
        require_extra("mcap.stream_reader", "lab")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "recording.npz"
        _run(path, target, timestep)
        (first, *later) = _unpack(target)
    return Recording(**first, later=tuple(Recording(**segment) for segment in later))


def _read(path: Path, timestep: float) -> Recording:
    if path.suffix == ".mcap":
        return read_mcap(path)
    if path.suffix == ".json":
        return read_json(path)
    return read_csv(path, timestep)


def _run(path: Path, target: Path, timestep: float) -> None:
    """Read a file in a process of its own, which writes the arrays to another file.

    Raises:
        RecordingError: it is no recording, or reading it needs too much memory.
    """
    module = "manyworlds.lab.recording.reading"
    folders = [folder or os.getcwd() for folder in sys.path]
    process = subprocess.run(
        [sys.executable, "-P", "-m", module, str(path), str(target), repr(timestep)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        start_new_session=True,  # an interrupt at the terminal reaches the caller alone
    )
    if not process.returncode:
        return
    try:
        error = json.loads(process.stdout)
    except ValueError:  # the system ended it
        error = {"text": _TOO_MUCH, "line": 0}
    raise RecordingError(error["text"], path.name, error["line"])


def main() -> None:
    """Read a recording, and write its arrays."""
    lower_priority(5)  # the physics of a running world comes first
    source, target, timestep = sys.argv[1:]
    limit_memory(MAX_MEMORY)
    gc.disable()  # it would search the lists of a large text again and again
    try:
        _pack(_read(Path(source), float(timestep)), Path(target))
        return
    except RecordingError as error:
        found = {"text": str(error).partition(": ")[2], "line": error.line}
    except MemoryError:
        found = {"text": _TOO_MUCH, "line": 0}
    print(json.dumps(found))
    sys.exit(1)


def _pack(recording: Recording, target: Path) -> None:
    meta = []
    arrays = {}
    for number, segment in enumerate(recording.segments):
        meta.append(
            {
                "index": {part: dict(elements) for part, elements in segment.index.items()},
                "joint_types": dict(segment.joint_types),
                "model_hash": segment.model_hash,
                "complete": segment.complete,
            }
        )
        arrays[f"times{number}"] = segment.times
        arrays[f"values{number}"] = segment.values
    np.savez(target, allow_pickle=False, meta=json.dumps(meta), **arrays)


def _unpack(target: Path) -> Iterator[dict[str, Any]]:
    """Yield the fields of each segment."""
    with np.load(target, allow_pickle=False) as archive:
        for number, meta in enumerate(json.loads(str(archive["meta"]))):
            values = archive[f"values{number}"]
            index = index_from_plain(meta.pop("index"), values.shape[1])
            yield {"times": archive[f"times{number}"], "values": values, "index": index, **meta}


if __name__ == "__main__":
    main()
