"""Recordings as text: CSV for spreadsheets and motion capture, JSON in URLab's format."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manyworlds.lab.moments.recording import CAMERA, Index, Recording, RecordingError
from manyworlds.utils.files import write_atomic

_TIME = ("time", "timestamp")
_CAMERA = [f"cam_{axis}" for axis in CAMERA]
_WIDTHS = (4, 7)  # of ball and free joints
_MEMBER = re.compile(r"(.+)\[(\d+)\]")
_ANGLES = CAMERA[3:]


def write_csv(path: Path, recording: Recording) -> None:
    """Write positions: `time` with six decimals, joints with eight, `name[k]` for wide ones."""
    header = ["time"]
    columns = []
    for field in ("qpos", "camera"):
        for name, (start, width) in recording.index.get(field, {}).items():
            if field == "camera":
                header += _CAMERA
            elif width == 1:
                header.append(name)
            else:
                header += [f"{name}[{k}]" for k in range(width)]
            columns += range(start, start + width)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    for time, row in zip(recording.times, recording.values[:, columns], strict=True):
        writer.writerow([f"{time:.6f}", *(f"{value:.8f}" for value in row)])
    write_atomic(path, text.getvalue())


def read_csv(path: Path, timestep: float = 0.002) -> Recording:
    """Read positions of joints by the names in the first line.

    Four or seven columns `name[0]`, `name[1]` ... are one ball or free joint, others a joint each.

    Args:
        path: path of the file.
        timestep: time between rows [s] if there is no column `time` or `timestamp`.

    Raises:
        RecordingError: the file is no such table; the message names the line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise RecordingError("it is not text in UTF-8.", path.name) from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[list[float]] = []
    lines: list[int] = []
    try:
        header = [name.strip() for name in next(reader, [])]
        for cells in reader:
            if cells:
                rows.append(_numbers(cells, header, path.name, reader.line_num))
                lines.append(reader.line_num)
    except csv.Error as error:
        raise RecordingError(f"{error}.", path.name, reader.line_num) from error
    index, clock = _columns(header, path.name)
    if not rows:
        raise RecordingError("it has no rows.", path.name, max(1, reader.line_num))
    values = np.array(rows)
    if clock is None:
        times = np.arange(len(rows)) * timestep
    else:
        times = values[:, clock].copy()
    return _recording(times, values, index, path.name, lines)


def _numbers(cells: list[str], header: list[str], file: str, line: int) -> list[float]:
    if len(cells) != len(header):
        message = f"it has {len(cells)} columns, but the first line has {len(header)}."
        raise RecordingError(message, file, line)
    numbers = []
    for name, cell in zip(header, cells, strict=True):
        try:
            number = float(cell)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise RecordingError(f"'{cell}' of '{name}' is not a finite number.", file, line)
        numbers.append(number)
    return numbers


def _columns(header: list[str], file: str) -> tuple[Index, int | None]:
    """Find the joints, the camera, and the column of the time."""
    double = {name for name in header if not name or header.count(name) > 1}
    if double:
        raise RecordingError(f"columns need unique names: {sorted(double)}.", file, 1)
    columns = {name: column for column, name in enumerate(header)}
    clock = next((column for name, column in columns.items() if name.lower() in _TIME), None)
    if clock is not None:
        del columns[header[clock]]
    index: dict[str, dict[str, tuple[int, int]]] = {"qpos": {}}
    start = columns.get(_CAMERA[0], -1)
    if header[start : start + len(_CAMERA)] == _CAMERA:
        index["camera"] = {"camera": (start, len(_CAMERA))}
        columns = {name: column for name, column in columns.items() if name not in _CAMERA}
    for name, column in columns.items():
        member = _MEMBER.fullmatch(name)
        group = member[1] if member else ""
        width = next((n for n in _WIDTHS if _is_group(columns, group, n)), 0)
        if not width:
            index["qpos"][name] = (column, 1)
        elif name == f"{group}[0]":
            members = [f"{group}[{k}]" for k in range(width)]
            if header[column : column + width] != members:
                raise RecordingError(f"columns of '{group}' must be adjacent.", file, 1)
            index["qpos"][group] = (column, width)
    if not index["qpos"]:
        raise RecordingError("its first line names no joints.", file, 1)
    return index, clock


def _is_group(columns: dict[str, int], name: str, width: int) -> bool:
    present = [f"{name}[{k}]" in columns for k in range(width + 1)]
    return all(present[:-1]) and not present[-1]


def write_json(path: Path, recording: Recording) -> None:
    """Write positions and velocities of joints, one frame after another, to the last digit."""
    fields = {"qPos": "qpos", "qVel": "qvel"}
    camera = recording.index.get("camera", {}).values()
    frames = []
    for time, values in zip(recording.times.tolist(), recording.values.tolist(), strict=True):
        joints: dict[str, dict[str, list[float]]] = {name: {} for name in recording.joints}
        for key, field in fields.items():
            places = recording.index.get(field, {})
            for name, joint in joints.items():
                if name in places:
                    start, width = places[name]
                    joint[key] = values[start : start + width]
        frame = {"timestamp": time, "jointStates": joints, "bHasCameraData": bool(camera)}
        for start, width in camera:
            pose = dict(zip(CAMERA, values[start : start + width], strict=True))
            frame["cameraRotation"] = {axis: pose.pop(axis) for axis in _ANGLES}
            frame["cameraPosition"] = pose
        frames.append(frame)
    write_atomic(path, json.dumps({"Frames": frames}))


def read_json(path: Path) -> Recording:
    """Read what `write_json` or URLab wrote; keys may be in any case.

    Raises:
        RecordingError: the file is no such recording.
    """
    try:
        frames = _fold(json.loads(path.read_text(encoding="utf-8-sig")))["frames"]
        first = _flatten(frames[0])
        index: dict[str, dict[str, tuple[int, int]]] = {"qpos": {}}
        start = 0
        for (field, name), numbers in first.items():
            if numbers:
                index.setdefault(field, {})[name] = (start, len(numbers))
                start += len(numbers)
    except json.JSONDecodeError as error:
        raise RecordingError(f"{error.msg}.", path.name, error.lineno) from error
    except (UnicodeDecodeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise RecordingError("it has no frames of joint states.", path.name) from error
    rows = []
    times = []
    for number, frame in enumerate(frames):
        try:
            parts = _flatten(frame)
            if _widths(parts) != _widths(first):
                raise ValueError("its joints differ from those of the first frame")
            row: list[float] = []
            for key in first:
                row += map(float, parts[key])
            rows.append(row)
            times.append(float(frame["timestamp"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RecordingError(f"frame {number} is invalid: {error}.", path.name) from error
    values = np.array(rows)
    if not np.isfinite(values).all():
        raise RecordingError("numbers must be finite.", path.name)
    return _recording(np.array(times), values, index, path.name)


def _flatten(frame: dict[str, Any]) -> dict[tuple[str, str], list[float]]:
    """Return the numbers of one frame by field and name."""
    parts: dict[tuple[str, str], list[float]] = {}
    for name, joint in frame["jointstates"].items():
        joint = _fold(joint)
        parts["qpos", name] = joint["qpos"]
        parts["qvel", name] = joint.get("qvel", [])
    if frame.get("bhascameradata"):
        pose = _fold({**frame["cameraposition"], **frame["camerarotation"]})
        parts["camera", "camera"] = [pose[axis] for axis in CAMERA]
    return parts


def _widths(parts: Mapping[tuple[str, str], Sequence[float]]) -> dict[tuple[str, str], int]:
    return {key: len(numbers) for key, numbers in parts.items()}


def _fold(value: Any) -> Any:
    """Make the keys of a file lower case; names of joints stay."""
    if isinstance(value, list):
        return [_fold(item) for item in value]
    if isinstance(value, dict):
        folded = {}
        for key, item in value.items():
            if key.lower() != "jointstates":
                item = _fold(item)
            folded[key.lower()] = item
        return folded
    return value


def _recording(
    times: np.ndarray, values: np.ndarray, index: Index, file: str, lines: list[int] | None = None
) -> Recording:
    """Create a recording, if its times ascend."""
    back = np.flatnonzero(np.diff(times) <= 0.0)
    if len(back) or not np.isfinite(times).all():
        frame = 0
        if len(back):
            frame = int(back[0]) + 1
        line = lines[frame] if lines else 0
        raise RecordingError(f"times must ascend, but frame {frame} does not.", file, line)
    return Recording(times, values, index)
