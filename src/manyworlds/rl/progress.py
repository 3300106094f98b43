"""Progress of a training run: records of iterations and of edits, and the files that hold them."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

FILE_NAME = "progress.jsonl"
"""Name of the file of a run with a line for each iteration."""
EDITS_FILE = "edits.jsonl"
"""Name of the file of a run with a line for each edit."""

_Record = TypeVar("_Record")


@dataclass(frozen=True)
class IterationRecord:
    """Report of one iteration."""

    iteration: int
    """Iterations done so far."""
    total: int
    """Iterations planned."""
    mean_return: float | None
    """Mean return of the last 100 finished episodes, or None before the first."""
    steps_per_s: float
    """Control steps per second of all worlds, learning included."""
    collect_time: float
    """Time spent stepping worlds and computing actions [s]."""
    learn_time: float
    """Time spent learning [s]."""
    env_time: float | None = None
    """Part of the collection that the environment takes [s]; None in files of older versions."""
    physics_time: float | None = None
    """Part of the environment's time that its physics steps take [s], actuators included; None in
    files of older versions."""
    terminated: float | None = None
    """Share of the episodes that ended in the iteration and were terminated, not timed out, in
    [0, 1]; None if none ended, or if the environment does not tell."""
    scalars: dict[str, float | None] = field(default_factory=dict)
    """Logged values by their names, such as `Episode_Reward/upright`; None for values that are not
    finite. The logger averages them over the steps of the iteration."""

    @property
    def time(self) -> float:
        """Time of the iteration [s]."""
        return self.collect_time + self.learn_time

    @property
    def episode_length(self) -> float | None:
        """Mean length of the last 100 finished episodes [control steps]; None before the first."""
        return self.scalars.get("Train/mean_episode_length")

    @property
    def shares(self) -> dict[str, float]:
        """Shares of the time: physics; managers, the rest of the environment; and the learner.

        The learner's share includes the actions of the policy. Empty in files of older versions.
        """
        if self.env_time is None or self.physics_time is None:
            return {}
        return {
            "physics": self.physics_time / self.time,
            "managers": (self.env_time - self.physics_time) / self.time,
            "learner": (self.time - self.env_time) / self.time,
        }

    def describe(self, *, shares: bool = True) -> str:
        """Return return and length of recent episodes, terminations, speed, and shares of time."""
        shown = "-"
        if self.mean_return is not None:
            shown = f"{self.mean_return:.2f}"
        parts = [f"return {shown}"]
        if self.episode_length is not None:
            parts.append(f"length {self.episode_length:.0f}")
        if self.terminated is not None:
            parts.append(f"{100 * self.terminated:.0f} % terminated")
        parts.append(f"{self.steps_per_s:,.0f} control steps/s")
        if shares and self.shares:
            told = " ".join(f"{name} {100 * share:.0f}" for name, share in self.shares.items())
            parts.append(f"{told} %")
        return ", ".join(parts)


@dataclass(frozen=True)
class EditRecord:
    """Edit that a training has applied."""

    after: int
    """Iterations that were done before it."""
    time: str
    """Date and time in ISO 8601."""
    edit: Mapping[str, object]
    """The edit as plain data; see `manyworlds.live.edit_from_plain`."""
    text: str
    """The edit in one line."""


def training_minutes(records: Sequence[IterationRecord]) -> list[float]:
    """Return the training time at the end of each iteration [min]."""
    return [seconds / 60.0 for seconds in accumulate(record.time for record in records)]


def control_steps(records: Sequence[IterationRecord]) -> list[int]:
    """Return the number of control steps, of all worlds, at the end of each iteration."""
    return [round(n) for n in accumulate(record.steps_per_s * record.time for record in records)]


def curve(records: Sequence[IterationRecord], key: str) -> list[float]:
    """Return a value of each iteration; NaN where there is none.

    Args:
        records: the iterations.
        key: a field of the records, `share/physics`, `share/managers`, `share/learner`, or the name
            of a logged value.
    """
    values = []
    for record in records:
        value = _value(record, key)
        values.append(math.nan if value is None else value)
    return values


def curve_keys(records: Sequence[IterationRecord]) -> list[str]:
    """Return the keys that have a value in at least one record."""
    others = ("iteration", "total", "scalars")
    fields = [f.name for f in dataclasses.fields(IterationRecord) if f.name not in others]
    shares = dict.fromkeys(f"share/{part}" for record in records for part in record.shares)
    logged = dict.fromkeys(name for record in records for name in record.scalars)
    return [
        key
        for key in (*fields, *shares, *logged)
        if any(_value(record, key) is not None for record in records)
    ]


def _value(record: IterationRecord, key: str) -> float | None:
    if key in record.scalars:
        return record.scalars[key]
    if key.startswith("share/"):
        return record.shares.get(key.removeprefix("share/"))
    return vars(record).get(key)


def write_progress(run: Path, records: Sequence[IterationRecord], mode: str) -> None:
    """Write a line for each record immediately, so that they are kept if the run fails."""
    _write_lines(run / FILE_NAME, records, mode)


def write_edits(run: Path, records: Sequence[EditRecord], mode: str) -> None:
    """Write a line for each edit immediately, so that they are kept if the run fails."""
    _write_lines(run / EDITS_FILE, records, mode)


def read_progress(run: Path, min_count: int = 0) -> list[IterationRecord]:
    """Read the records of a run; an incomplete last line, of a run that was killed, is left out.

    Entries that this version does not know are left out.

    Args:
        run: the run's folder.
        min_count: minimum number of records.

    Raises:
        FileNotFoundError: the run has no such file.
        ValueError: a line is not the record of an iteration, or there are too few.
    """
    path = run / FILE_NAME
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no '{path}': '{run}' is not the folder of a training run."
        )
    records = _read_lines(path, _iteration_record, "the record of an iteration")
    if len(records) < min_count:
        raise ValueError(
            f"'{path}' holds {len(records)} iterations, at least {min_count} needed: train longer."
        )
    return records


def read_edits(run: Path) -> list[EditRecord]:
    """Read the edits of a run; none if it has no such file.

    An incomplete last line, of a run that was killed, is left out.

    Raises:
        ValueError: a line is not the record of an edit.
    """
    path = run / EDITS_FILE
    if not path.is_file():
        return []
    return _read_lines(path, lambda entries: EditRecord(**entries), "the record of an edit")


def _iteration_record(entries: dict[str, Any]) -> IterationRecord:
    known = IterationRecord.__dataclass_fields__
    record = IterationRecord(**{name: v for name, v in entries.items() if name in known})
    for name in ("iteration", "steps_per_s", "collect_time", "learn_time"):
        float(entries[name])
    return record


def _write_lines(path: Path, records: Sequence[IterationRecord | EditRecord], mode: str) -> None:
    with path.open(mode) as file:
        file.write("".join(json.dumps(asdict(record)) + "\n" for record in records))


def _read_lines(
    path: Path, record_of: Callable[[dict[str, Any]], _Record], what: str
) -> list[_Record]:
    """Read the records in the complete lines of a file."""
    records = []
    for number, line in enumerate(path.read_text(errors="replace").splitlines(keepends=True), 1):
        if not line.endswith("\n"):
            break
        try:
            records.append(record_of(json.loads(line)))
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(
                f"Line {number} of '{path}' is not {what} ({error}): another version of "
                "manyworlds wrote it, or it was edited; train again, or remove the line."
            ) from None
    return records
